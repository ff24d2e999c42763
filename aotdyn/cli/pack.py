"""`aotdyn pack`: makes a package of one or more recordings."""

import sys
from pathlib import Path
from typing import Any

import click

from aotdyn.cli.settings import read, setting_option


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
@click.option(
    "--isa",
    "isas",
    multiple=True,
    type=click.Choice(["avx512", "avx2", "scalar"]),
    help="Vector instructions to compile for; all unless given. Can be given more than once.",
)
@click.option(
    "--freeze",
    is_flag=True,
    help="Make the recorded weights part of the compiled graphs that need no gradients.",
)
@click.option(
    "--tune",
    is_flag=True,
    help="Ship kernels for GPUs in several configurations; the device takes the fastest.",
)
@click.option(
    "--import",
    "imports",
    multiple=True,
    metavar="MODULE",
    help="A module or file that registers operators which the program calls, if it is not found.",
)
@setting_option(
    "A setting of the compiler, such as fallback_random=false or max_autotune=true; "
    "cudagraphs=true has launches on GPUs captured when the package is served."
)
def command(
    recordings: tuple[Path, ...],
    output: Path,
    targets: tuple[str, ...],
    isas: tuple[str, ...],
    freeze: bool,
    tune: bool,
    imports: tuple[str, ...],
    settings: tuple[str, ...],
) -> None:
    """Merge recordings and compile them into one package, for `aotdyn run` and aotdyn.load."""
    options = read(settings)
    if isas:
        options["isas"] = isas
    if tune:
        options["tune"] = True
    if imports:
        options["imports"] = imports
    import aotdyn  # here, because it brings torch along

    with _Progress() as progress:
        report = aotdyn.pack(list(recordings), output, targets, options, progress.show, freeze)
    click.echo(str(report))


class _Progress:
    """A bar while graphs are compiled, on a terminal only."""

    def __init__(self) -> None:
        self._bar: Any = None

    def show(self, done: int, total: int, what: str) -> None:
        if not sys.stderr.isatty():
            return
        if self._bar is None:
            self._bar = click.progressbar(
                length=total,
                label="compiling",
                item_show_func=lambda item: item,
                file=sys.stderr,
            )
            self._bar.__enter__()
        self._bar.update(done - self._bar.pos, what)

    def __enter__(self) -> "_Progress":
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._bar is not None:
            self._bar.__exit__(*exception)
