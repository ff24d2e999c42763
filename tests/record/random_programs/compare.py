"""Runs a program as plain Python and compiled, and compares everything that can be seen of it:
results, arguments, what is the same object as what, exceptions with cause and context, output,
globals and class attributes."""

import contextlib
import functools
import io
import itertools
import linecache
import os
import random
import sys
import types
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch

from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings

from . import prelude

MODULE = "random_program"
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), range, slice)
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, type, functools.partial)


@dataclass(frozen=True)
class Case:
    """A program's text, what its arguments are made from, and whether to break after so many
    instructions everywhere."""

    text: str
    calls: tuple[int, ...]
    break_every: int = 0


def check(case: Case) -> None:
    """Raises AssertionError, with the program, where the two runs can be told apart."""
    module = load(case.text)
    expected = [observe(module, module.program, seed) for seed in case.calls]
    fast = compiled(module.program, Settings("eager"))
    before = os.environ.get("AOTDYN_BREAK_EVERY")
    os.environ["AOTDYN_BREAK_EVERY"] = str(case.break_every)
    try:
        for seed, wanted in zip(case.calls, expected):
            found = observe(module, fast, seed)
            if wanted["error"][0] == "RecursionError":
                # What else uses the stack decides how often anything is done before that.
                assert found["error"][0] == "RecursionError", case.text
                continue
            assert found == wanted, (
                f"differs in {_difference(wanted, found)}\nbreak_every={case.break_every} "
                f"seed={seed}\n{case.text}"
            )
    finally:
        os.environ["AOTDYN_BREAK_EVERY"] = before or ""
        sys.modules.pop(MODULE, None)


def _difference(wanted: dict, found: dict) -> str:
    lines = [
        f"{key}:\n  python  {wanted[key]}\n  aotdyn  {found[key]}"
        for key in wanted
        if wanted[key] != found[key]
    ]
    return "\n".join(lines)


_numbers = itertools.count()


def load(text: str) -> types.ModuleType:
    """The module with this text; its source can be looked up, as a file's."""
    path = f"/random/{next(_numbers)}/{MODULE}.py"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    module = types.ModuleType(MODULE)
    module.__file__ = path
    sys.modules[MODULE] = module
    exec(compile(text, path, "exec"), vars(module))
    return module


def arguments(seed: int) -> list[Any]:
    """Arguments for a program, all new."""
    choose = random.Random(seed)
    x = torch.tensor([float(choose.randint(-2, 3)) for _ in range(4)])
    y = x if choose.random() < 0.1 else x.flip(0) + 1
    ints = [choose.randint(-2, 6) for _ in range(choose.randint(0, 4))]
    table = {key: choose.randint(0, 9) for key in choose.sample("abc", choose.randint(0, 3))}
    items = ints if choose.random() < 0.3 else [1, 2]
    box = choose.choice((prelude.Base, prelude.Derived))(choose.randint(0, 5), items, y)
    if choose.random() < 0.5:
        box.extra = ints
    return [
        x, y, choose.randint(-2, 7), choose.randint(1, 4), choose.random() < 0.5,
        choose.choice(("a", "bc", "")), ints, table, box, set(ints[:2]), prelude.Vector(*ints[:3]),
    ]  # fmt: skip


def observe(module: types.ModuleType, call: Any, seed: int) -> dict[str, Any]:
    """Everything that can be seen of one call."""
    prelude.resettable()
    module.COUNT, module.STATE = 0, {}
    args, log = arguments(seed), []
    torch.manual_seed(0)
    random.seed(0)
    out = io.StringIO()
    result = error = None
    with contextlib.redirect_stdout(out):
        try:
            result = call(*args, log)
        except Exception as raised:
            error = raised
    look = Look()
    return {
        "error": look(error),
        "result": look(result),
        "args": look(args),
        "log": look(log),
        "globals": look((module.COUNT, module.STATE)),
        "classes": look((
            prelude.Base.total, prelude.Derived.total, prelude.Base.shared, prelude.Guard.entered,
        )),
        "output": out.getvalue(),
        "grad": torch.is_grad_enabled(),
    }  # fmt: skip


class Look:
    """A value as plain data; objects that can change have a number, by which they are the same."""

    def __init__(self):
        self.seen: dict[int, tuple[int, Any]] = {}
        self.storages: dict[int, int] = {}

    def __call__(self, value: Any) -> Any:
        if type(value) in _PLAIN:
            return type(value).__name__, repr(value)
        if isinstance(value, Enum):
            return str(value)
        if isinstance(value, _FUNCTIONS):
            return "callable", getattr(value, "__qualname__", "")
        if isinstance(value, tuple):
            return type(value).__name__, tuple(map(self, value))
        known = self.seen.get(id(value))
        if known is not None:
            return "again", known[0]
        # The object is kept, so that its id stays its own.
        self.seen[id(value)] = (len(self.seen), value)
        return type(value).__name__, len(self.seen), self._parts(value)

    def _parts(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            storage = self.storages.setdefault(
                value.untyped_storage().data_ptr(), len(self.storages)
            )
            facts = (str(value.dtype), tuple(value.shape), value.stride(), value.requires_grad)
            return facts, str(value.tolist()), storage
        if isinstance(value, BaseException):
            parts = (value.args, value.__cause__, value.__context__, vars(value))
            return tuple(map(self, parts)), value.__suppress_context__
        if isinstance(value, dict):
            items = [(self(key), self(item)) for key, item in value.items()]
            return items, self(dict(vars(value))) if hasattr(value, "__dict__") else None
        if isinstance(value, list):
            return list(map(self, value))
        if isinstance(value, set | frozenset):
            return sorted(map(repr, value))
        if isinstance(value, types.MethodType):
            return value.__func__.__qualname__, self(value.__self__)
        if hasattr(value, "maxlen"):
            return value.maxlen, list(map(self, value))
        if hasattr(value, "__next__"):
            return self._rest(value)
        return self(vars(value)) if hasattr(value, "__dict__") else repr(type(value))

    def _rest(self, iterator: Any) -> Any:
        """What an iterator still gives."""
        try:
            return list(map(self, itertools.islice(iterator, 8)))
        except Exception as error:
            return type(error).__name__
