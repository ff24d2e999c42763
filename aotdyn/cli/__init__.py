"""The command line: one file per command, imported when it is asked for.

A command's file imports no more than click; the library, and with it torch, is imported when the
command runs. That keeps `aotdyn --help` and mistyped commands fast.
"""

import errno
from importlib import import_module

import click

from aotdyn.package.errors import AotdynError

COMMANDS = ("record", "pack", "thin", "run", "inspect", "cache", "demo")


class Failure(click.ClickException):
    """A command cannot do what it was asked: one line on stderr, then the exit code."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code

    def show(self, file: object = None) -> None:
        click.echo(f"aotdyn: {self.format_message()}", err=True)


class Commands(click.Group):
    """Finds commands by the name of their file, and turns the library's errors into one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return import_module(f"aotdyn.cli.{cmd_name}").command

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except AotdynError as error:
            raise Failure(str(error)) from error
        except OSError as error:
            # A file of ours that cannot be read or written. Click deals with a closed pipe.
            if error.filename is None or error.errno == errno.EPIPE:
                raise
            raise Failure(f"{error.filename}: {error.strerror}") from error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="aotdyn")
def main() -> None:
    """Record what a PyTorch program does, pack it, serve it without tracing or compiling."""
