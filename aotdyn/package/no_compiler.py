"""torch's compiler where nothing has imported it: some functions of torch import it only to tell it
to stay away. What stands in for it knows what these ask; anything else imports the real one."""

import contextlib
import importlib
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .own_builtins import BUILTINS as __builtins__  # noqa: F401

_NAME = "torch._dynamo"


class StandIn(types.ModuleType):
    """Stands for `torch._dynamo` as an attribute of torch, or as a module."""

    compiled_autograd = types.SimpleNamespace(_disable=contextlib.nullcontext)

    def __init__(self) -> None:
        super().__init__(_NAME)

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(_NAME) is self:
            del sys.modules[_NAME]
        return getattr(importlib.import_module(_NAME), name)


class _Meanwhile(StandIn):
    """What stands in while a function runs. marked: functions that were to be kept away from the
    compiler, and now believe that they are."""

    def __init__(self) -> None:
        super().__init__()
        self.marked: list[Callable] = []

    def disable(self, function: Callable, *options: Any, **more: Any) -> Callable:
        self.marked.append(function)
        return function


class _Use:
    """How many threads are inside, and what stands in for them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        self.stand_in: Any = None
        self.before: Any = None

    def enter(self) -> None:
        with self.lock:
            self.count += 1
            if self.count == 1 and _NAME not in sys.modules:
                self.before = vars(torch).get("_dynamo")
                self.stand_in = torch._dynamo = sys.modules[_NAME] = _Meanwhile()

    def leave(self) -> None:
        with self.lock:
            self.count -= 1
            if self.count or self.stand_in is None:
                return
            stand_in, self.stand_in = self.stand_in, None
            for function in stand_in.marked:
                vars(function).pop("__dynamo_disable", None)
            if sys.modules.get(_NAME) is stand_in:
                del sys.modules[_NAME]
            if vars(torch).get("_dynamo") is stand_in:
                if self.before is None:
                    del torch._dynamo
                else:
                    torch._dynamo = self.before


_use = _Use()


@contextlib.contextmanager
def compiler_left_out() -> Iterator[None]:
    """Inside, functions of torch find a compiler to tell to stay away, and import none."""
    _use.enter()
    try:
        yield
    finally:
        _use.leave()
