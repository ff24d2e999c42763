"""`aotdyn record`: runs a program and writes down what it does with torch."""

from pathlib import Path

import click

from aotdyn.cli import Failure, script


@click.command(
    "record",
    short_help="Run a program and record it.",
    context_settings=script.SETTINGS,
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The recording.  [default: the program's name with the ending .rec]",
)
@click.option(
    "--weights",
    is_flag=True,
    help="Record the values of parameters and buffers too, for `aotdyn pack --freeze`.",
)
@click.option(
    "--device",
    default="cpu",
    metavar="TARGET",
    help="The GPU that the recording is for, such as cuda:sm_90. Where there is none, tensors on "
    "`cuda` are computed by the CPU.",
)
@script.arguments
@click.pass_context
def command(
    ctx: click.Context,
    output: Path | None,
    weights: bool,
    device: str,
    as_module: bool,
    program: tuple[str, ...],
) -> None:
    """Run a program on representative inputs and record it, for `aotdyn pack`.

    Every callable given to aotdyn.compile or torch.compile is recorded; if the program has
    neither, each outermost call of an nn.Module. What the program prints and returns is its own.
    """
    # Imported here: they bring torch along.
    import aotdyn
    from aotdyn.runtime.patch import patched

    if device != "cpu":
        from aotdyn.package.compilers.gpu import emulated

        if not emulated.is_there(device):
            emulated.start_anew()

    with patched(roots=True):
        found = script.locate(program, as_module)
        output = output or Path(_name(program[0], as_module) + ".rec")
        file = output.absolute()  # the program may change the working directory
        told = {"script": program[0], "device": device, "weights": weights}
        with aotdyn.record(file, **told) as recording:
            status = found.run()

    if recording.empty:
        file.unlink(missing_ok=True)
        raise Failure(
            f"nothing was recorded: {program[0]} called nothing compiled and no nn.Module "
            "that could be recorded",
            exit_code=status or 1,
        )
    click.echo(f"aotdyn: {output}: {recording.summary()}", err=True)
    ctx.exit(status)


def _name(program: str, as_module: bool) -> str:
    return program.rpartition(".")[2] if as_module else Path(program).stem
