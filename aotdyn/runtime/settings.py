"""What one `compile` asked for, and the entries that belong to it: the compiled function, its
continuations, and the nested frames that its eager calls reach."""

import importlib._bootstrap
import sys
import threading
import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any

from torch.nn.modules.lazy import LazyModuleMixin

from .. import policy
from ..package.interruptions import is_interruption
from ..package.options import compile_options
from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401
from ..package.point import RAISE, Point
from ..package.state import restore_state
from . import logs, registry
from .cpython import raised_at, trampoline_code
from .entry import Entry, dispatch
from .hook import call_hooked, hookless, set_decider, set_observer, switch_off
from .restart import Kept
from .support import Rest
from .suspended import SEEN, report
from .tracebacks import thrown

_current = threading.local()
_all: "weakref.WeakSet[Settings]" = weakref.WeakSet()


class Settings:
    """backend: "eager", "inductor" or a callable; the rest as in `compile`.

    capture: whether numbers and sizes that depend on data stay in the graph. A graph that has them
    may run eagerly where two without would be machine code, so it is asked for; under `fullgraph`
    the alternative is an error.
    """

    def __init__(
        self,
        backend: Any = None,
        fullgraph: bool = False,
        dynamic: bool | None = None,
        options: dict[str, Any] | None = None,
        mode: str | None = None,
    ):
        self.backend = backend
        self.fullgraph = fullgraph
        self.dynamic = dynamic
        self._asked = (backend, fullgraph, dynamic, options, mode)
        self.options, live = compile_options(mode, options)
        if live:
            logs.warn(
                f"the options {', '.join(live)} of compile() have values that only this process "
                "has; they are left out"
            )
        self.capture = bool((options or {}).get("capture", fullgraph or _torch_captures()))
        self._entries: dict[int, Entry] = {}
        _all.add(self)

    def __reduce__(self) -> tuple:
        """Entries are another process' own."""
        return Settings, self._asked

    def entry(self, code: CodeType, globals_: dict, point: Point | None = None) -> Entry:
        """The entry for a code object; made when it is first asked for."""
        found = self._entries.get(id(code))
        if found is None:
            found = self._entries.setdefault(id(code), Entry(code, globals_, self, None, None))
        return found if point is None else found.at(point)

    def entries(self) -> list[Entry]:
        """All entries with their continuations."""
        return [e for root in self._entries.values() for e in (root, *root.children.values())]

    @hookless
    def eager(self, function: Callable, /, *args: Any, **kwargs: Any) -> Any:
        """Calls a function as plain Python; the frames below it may be served or traced."""
        before = getattr(_current, "settings", None)
        _current.settings = self
        try:
            return call_hooked(function, *args, **kwargs)
        finally:
            _current.settings = before

    @hookless
    def again(
        self, entry: Entry, state: str, error: BaseException, kept: Kept | None, values: tuple
    ) -> Rest:
        """What runs a frame as plain Python whose graph has raised: Python raises the same where
        the program does, in reach of its handlers. state: that in which the frame was entered;
        kept: how tensors and random numbers were then.

        Raises the graph's error where it has changed tensors for good. An interruption comes before
        what the frame was about to do: in reach of the handlers there, and not again.
        """
        if isinstance(error, KeyboardInterrupt) or is_interruption(error):
            restore_state(state)
            if kept is not None:
                kept.put_back()
            return self.interrupted(entry, error, values)
        # It leads to the body, which holds the error, and to the graph's frame: with that one ends
        # the inference mode that the graph has entered.
        error.__traceback__ = None
        restore_state(state)
        if kept is not None and not kept.put_back():
            raise error
        logs.log("misses", f"a graph of {entry.key} raised {error!r}; the frame runs again")
        return Rest(entry, [*values])

    def interrupted(self, entry: Entry, error: BaseException, values: tuple) -> Rest:
        """What runs a frame on that was to go on, where something has come instead: in reach of
        its handlers. Raises the error where it has none there."""
        point = entry.point
        raised = None if point is None else raised_at(entry.code, point)
        if point is None or raised is None:
            raise error
        before = values[: len(values) - sum(point.stack) - (point.kind == RAISE)]
        stack = values[len(before) : len(before) + sum(raised.stack)]
        return Rest(entry.at(raised), [*before, *stack, thrown(error)])

    def run_rest(self, entry: Entry, values: list) -> Any:
        """Runs the rest of a frame as plain Python, given the only list of its values."""
        if entry.point is not None:
            return self.run_released(entry, values)
        # The caller holds what the frame was called with.
        given = tuple(values)
        values.clear()
        try:
            return self.run_plain(entry, given)
        finally:
            del given  # see `entry.dispatch`

    @hookless
    def run_plain(self, entry: Entry, values: tuple) -> Any:
        """Runs the rest of a frame as plain Python; the frames below may be served or traced."""
        # As `eager`, with a Python frame less: recursive programs break at every level.
        before, depth = getattr(_current, "settings", None), getattr(_current, "depth", 0)
        if depth >= _DEEPEST:
            # Each level takes Python frames of ours: a deep recursion must still fit.
            return entry.plain(*values)
        _current.settings, _current.depth = self, depth + 1
        try:
            return call_hooked(entry.plain, *values)
        finally:
            _current.settings, _current.depth = before, depth
            del values  # see `entry.dispatch`

    @hookless
    def run_released(self, entry: Entry, values: list) -> Any:
        """As `run_plain`, in the middle of a frame: nothing but the frame holds its values, which
        end where it drops them. The list is emptied."""
        before, depth = getattr(_current, "settings", None), getattr(_current, "depth", 0)
        if depth >= _DEEPEST:
            return entry.released(values)
        _current.settings, _current.depth = self, depth + 1
        try:
            return call_hooked(entry.released, values)
        finally:
            _current.settings, _current.depth = before, depth


# So many frames that run as plain Python, one below the other, are looked below.
_DEEPEST = 40


def _torch_captures() -> bool:
    """Whether the program has asked torch.compile for the same."""
    config = sys.modules.get("torch._dynamo.config")
    names = ("capture_scalar_outputs", "capture_dynamic_output_shape_ops")
    return all(getattr(config, name, False) for name in names)


def _decide(code: CodeType, globals_: dict) -> CodeType | None:
    """What becomes of a frame that eager code starts: served, or left alone for good."""
    settings = getattr(_current, "settings", None)
    if settings is None or not _is_entry(settings, code, globals_):
        return None
    if policy.is_seen_from_below(code, globals_):
        report(code, globals_, settings, SEEN)
        return None
    return trampoline_code(code, _nested(code, globals_))


def _observe(code: CodeType, globals_: dict) -> None:
    """A generator or coroutine of the program starts in eager code."""
    settings = getattr(_current, "settings", None)
    if settings is not None and policy.is_worth_an_entry(code):
        report(code, globals_, settings)


def _is_entry(settings: Settings, code: CodeType, globals_: dict) -> bool:
    if policy.is_worth_an_entry(code):
        return True
    packages = registry.packages()
    if not packages:
        return False
    key = Entry(code, globals_, settings, None, None).key
    return any(package.has(key) for package in packages)


def _nested(code: CodeType, globals_: dict) -> Callable:
    """The target of a nested frame's trampoline: dispatch under the settings of the eager call
    that reached it."""

    @hookless
    def enter(*values: Any) -> Any:
        settings = getattr(_current, "settings", None) or _DEFAULT
        try:
            return dispatch(settings.entry(code, globals_), values)
        finally:
            del values  # see `entry.dispatch`

    return enter


def all_settings() -> list[Settings]:
    """The settings of everything that is compiled in this process."""
    return list(_all)


def reset() -> None:
    """Forgets all variants and histories; compiled callables start over."""
    for settings in all_settings():
        for entry in settings.entries():
            entry.forget()
            entry.skipped, entry.history, entry.generation = "", None, -1


_DEFAULT = Settings()
set_decider(_decide)
set_observer(_observe)
# What runs while a module is imported runs once; some of it must not be imported from meanwhile.
switch_off(importlib._bootstrap._find_and_load.__code__)
# What lazy modules do to get their parameters is done once, too.
for _once in (LazyModuleMixin.__init__, LazyModuleMixin._infer_parameters):
    switch_off(_once.__code__)
