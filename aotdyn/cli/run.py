"""`aotdyn run`: runs a program and serves its compiled callables from a package."""

from pathlib import Path

import click

from aotdyn.cli import script
from aotdyn.cli.settings import read, setting_option


@click.command(
    "run",
    short_help="Run a program, served from a package.",
    context_settings=script.SETTINGS,
)
@click.option("--package", required=True, type=Path, help="The package to serve from.")
@click.option(
    "--on-miss",
    type=click.Choice(["jit", "eager", "error"]),
    default="jit",
    show_default=True,
    help="What to do with a call that the package does not cover.",
)
@click.option(
    "--triton-stand-in",
    is_flag=True,
    help="Where Triton is not installed, let the program import a stand-in for it.",
)
@setting_option("cudagraphs=true captures launches on a GPU for each shape, cudagraphs=false none.")
@click.option("--stats", is_flag=True, help="Say on stderr what was served and what missed.")
@script.arguments
@click.pass_context
def command(
    ctx: click.Context,
    package: Path,
    on_miss: str,
    triton_stand_in: bool,
    settings: tuple[str, ...],
    stats: bool,
    as_module: bool,
    program: tuple[str, ...],
) -> None:
    """Run a program with what it compiles served from a package: no tracing, no compiling.

    What the program prints and returns is its own. The package's code is run: use packages from
    people whose code you would run.
    """
    # Imported here: they bring torch along.
    import aotdyn
    from aotdyn.runtime.patch import patched

    loaded = aotdyn.load(
        package, on_miss=on_miss, triton_stand_in=triton_stand_in, options=read(settings)
    )
    try:
        with patched(roots=True):
            status = script.locate(program, as_module).run()
        if stats:
            served = loaded.stats()
            click.echo(f"aotdyn: {served.hits} hits, {served.misses} misses", err=True)
            if text := str(served):
                click.echo(text, err=True)
    finally:
        loaded.close()
    ctx.exit(status)
