"""Runs a script, or a module with `-m`, as `__main__`: as `python` does it, in this process.

Called by `aotdyn record` and `aotdyn run`. What the program prints, its exit status and its
tracebacks are those of a plain `python` run; our own frames are left out of the tracebacks.
"""

import builtins
import io
import os
import runpy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType, TracebackType

import click

from aotdyn.cli import Failure
from aotdyn.package.errors import AotdynError

PACKAGE = str(Path(__file__).parent.parent) + os.sep
EXAMPLES = PACKAGE + "examples" + os.sep
INTERRUPTED = 130  # what a shell reports for a process that Ctrl-C ended


def arguments(command: Callable) -> Callable:
    """Adds `(SCRIPT | -m MODULE) [ARGS]...` to a click command, as parameters for `locate`."""
    command = click.argument(
        "program", nargs=-1, type=click.UNPROCESSED, metavar="(SCRIPT | -m MODULE) [ARGS]..."
    )(command)
    # A flag, so that MODULE ends our own options just as SCRIPT does.
    return click.option("-m", "as_module", is_flag=True, help="Run a library module.")(command)


# What follows the program belongs to it, even where it looks like an option of ours.
SETTINGS = {"allow_interspersed_args": False}


@dataclass(frozen=True)
class Program:
    """A program that was found and compiled, and has not run yet."""

    code: CodeType
    file: str | None
    loader: object
    spec: ModuleSpec | None = None

    def run(self) -> int:
        """Runs the program to its end; returns its exit status, its traceback already shown."""
        main = ModuleType("__main__")
        main.__dict__.update(
            __annotations__={},
            __builtins__=builtins,
            __file__=self.file,
            __cached__=self.spec and self.spec.cached,
            __loader__=self.loader,
            __package__=self.spec and self.spec.parent,
            __spec__=self.spec,
        )
        sys.modules["__main__"] = main
        try:
            exec(self.code, main.__dict__)
        except BaseException as error:  # every way a program can end
            return status_of(error)
        return 0


def locate(program: tuple[str, ...], as_module: bool) -> Program:
    """Finds the program, and sets `sys.argv` and `sys.path[0]` as it will expect them.

    A `--` between the program and its arguments is dropped. Raises Failure where there is no such
    program, SystemExit where it does not compile.
    """
    if not program:
        raise click.UsageError("Missing argument 'SCRIPT' or '-m MODULE'.")
    name, *words = program
    if words[:1] == ["--"]:
        del words[0]
    sys.argv[:] = [name, *words]
    try:
        return _module(name) if as_module else _script(name)
    except click.ClickException:
        raise
    except BaseException as error:  # it does not compile, or a package above the module raised
        raise SystemExit(status_of(error)) from None


def _script(name: str) -> Program:
    file = os.path.abspath(name)
    try:
        with io.open_code(file) as stream:
            source = stream.read()
    except OSError as error:
        raise Failure(f"cannot open the script {name}: {error.strerror}", exit_code=2) from None
    _put_first_on_path(os.path.dirname(os.path.realpath(file)))
    code = compile(source, file, "exec", dont_inherit=True)
    return Program(code, file, SourceFileLoader("__main__", file))


def _module(name: str) -> Program:
    _put_first_on_path(os.getcwd())
    try:
        # Imports the packages above the module, which runs code of the user.
        _, spec, code = runpy._get_module_details(name, NoSuchModule)
    except NoSuchModule as error:
        raise Failure(f"cannot run the module: {error}", exit_code=2) from None
    sys.argv[0] = spec.origin
    return Program(code, spec.origin, spec.loader, spec)


class NoSuchModule(ImportError):
    """What we have runpy raise."""


def _put_first_on_path(folder: str) -> None:
    """Puts the program's folder where the interpreter put ours, unless it was told not to (-P)."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


def status_of(error: BaseException) -> int:
    """Shows what ended a program as the interpreter would, and returns the exit status it gives."""
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr)
        return 1
    _hide_own_frames(error)
    sys.excepthook(type(error), error, error.__traceback__)
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


def _hide_own_frames(error: BaseException) -> None:
    """Takes our frames out of the tracebacks of an exception and of those it came from."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        error = pending.pop()
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        error.__traceback__ = _without_own_frames(error)
        pending += [error.__cause__, error.__context__]


def _without_own_frames(error: BaseException) -> TracebackType | None:
    links = []
    link = error.__traceback__
    while link is not None:
        links.append(link)
        link = link.tb_next
    while links and (_own(links[0]) or _file(links[0]).startswith("<frozen ")):
        del links[0]
    if links and _own(links[-1]) and not isinstance(error, AotdynError):
        return links[0]  # raised by our own code: where is worth more than brevity
    result = None
    for link in reversed(links):
        if not _own(link):
            result = TracebackType(result, link.tb_frame, link.tb_lasti, link.tb_lineno)
    return result


def _own(link: TracebackType) -> bool:
    file = _file(link)
    return file.startswith((PACKAGE, "<aotdyn")) and not file.startswith(EXAMPLES)


def _file(link: TracebackType) -> str:
    return link.tb_frame.f_code.co_filename
