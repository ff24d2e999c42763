"""`aotdyn pack`: makes a package of one or more recordings."""

from pathlib import Path

import click


@click.command("pack", short_help="Compile recordings into a package.")
@click.argument("recordings", nargs=-1, required=True, metavar="RECORDING...", type=Path)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The package.",
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    default=("eager",),
    show_default=True,
    help="What to compile the graphs for; can be given more than once.",
)
def command(recordings: tuple[Path, ...], output: Path, targets: tuple[str, ...]) -> None:
    """Merge recordings and compile them into one package, for `aotdyn run` and aotdyn.load."""
    import aotdyn  # here, because it brings torch along

    click.echo(str(aotdyn.pack(list(recordings), output, targets=targets)))
