"""`aotdyn thin`: copies a package without the code that a deployment does not need."""

from pathlib import Path

import click


@click.command("thin", short_help="Copy a package with code for fewer targets.")
@click.argument("package", type=Path)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The smaller package.",
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="TARGET",
    help="A target to keep, besides `eager`; all unless given. Can be given more than once.",
)
@click.option(
    "--isa",
    "isas",
    multiple=True,
    metavar="ISA",
    help="Vector instructions to keep code for; all unless given. Can be given more than once.",
)
def command(package: Path, output: Path, targets: tuple[str, ...], isas: tuple[str, ...]) -> None:
    """Copy PACKAGE without what was compiled for other targets or vector instructions."""
    if not targets and not isas:
        raise click.UsageError("nothing to leave out: give --target or --isa")
    from aotdyn.package.thin import thin  # here, because it brings torch along

    click.echo(str(thin(package, output, targets, isas)))
