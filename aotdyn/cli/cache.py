"""`aotdyn cache`: shows or clears what the compilers keep on disk."""

import click


@click.command("cache", short_help="Show or clear what has been compiled.")
@click.option("--clear", is_flag=True, help="Remove everything.")
def command(clear: bool) -> None:
    """What `aotdyn pack` and the JIT have compiled is kept, so that it need not be compiled again.

    It lies in AOTDYN_CACHE, else in the user's cache folder, and takes up to AOTDYN_CACHE_LIMIT
    MiB (4096 unless set); what has not been used for longest goes first.
    """
    from aotdyn.package.compilers.cache import Cache  # here, because it brings torch along
    from aotdyn.package.printer import sized

    found = Cache()
    if clear:
        click.echo(f"{found.clear()} entries removed from {found.folder}")
        return
    usage = found.usage()
    click.echo(f"{found.folder}: {sized(sum(each.size for each in usage))} of {sized(found.limit)}")
    for each in usage:
        click.echo(f"  {each.kind}: {each.entries} entries, {sized(each.size)}")
