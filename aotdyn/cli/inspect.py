"""`aotdyn inspect`: prints what is in a recording or a package, running nothing of it."""

from pathlib import Path

import click


@click.command("inspect", short_help="List what a recording or package holds.")
@click.argument("file", type=Path)
@click.option("--guards", is_flag=True, help="With every variant's guards.")
@click.option("--breaks", is_flag=True, help="The places at which graphs break, in detail.")
@click.option(
    "--source",
    is_flag=False,
    flag_value="",
    metavar="[ENTRY]",
    help="With the generated source of the entries that ENTRY names; of all without it.",
)
@click.option(
    "--graph",
    is_flag=False,
    flag_value="",
    metavar="[ID]",
    help="With the code of the graph ID; of all without it.",
)
def command(
    file: Path, guards: bool, breaks: bool, source: str | None, graph: str | None
) -> None:
    """List the entries, variants, graphs and graph breaks of a recording or package FILE.

    Give FILE first: an option with an optional value takes the word behind it.
    """
    from aotdyn.package import printer  # here, because it brings torch along

    click.echo(printer.render(file, guards=guards, source=source, graph=graph, breaks=breaks))
