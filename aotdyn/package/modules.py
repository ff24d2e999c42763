"""What guards on modules of torch.nn look at."""

import operator
from collections.abc import Callable
from typing import Any

from torch.nn import Module

from .guard import HOOKS
from .own_builtins import BUILTINS as __builtins__  # noqa: F401
from .replaced import is_foreign, namespace_of, version

# From a module's own dictionary, those in which a call of the module looks for hooks.
hook_registries = operator.itemgetter(*HOOKS)

# What stands in for `Module.__call__` while a program is recorded.
_stand_ins: list[Callable] = []

_MODULE = namespace_of(Module)
# The version of Module's namespace, and whether calls were torch's own then.
_known: tuple[int, bool] = (-1, False)


def stand_in_for_call(function: Callable) -> Callable:
    """Notes that a function does what `Module.__call__` does, as far as guards are concerned."""
    global _known
    _stand_ins.append(function)
    _known = (-1, False)
    return function


def calls_are_torchs() -> bool:
    """Whether calling a module runs torch's own code."""
    global _known
    now, (then, answer) = version(_MODULE), _known
    if now != then:
        call = Module.__call__
        foreign = is_foreign(Module._call_impl) or is_foreign(call) and call not in _stand_ins
        answer = not foreign
        _known = (now, answer)
    return answer


def hook_kinds(module: Any) -> tuple | None:
    """For pre-hooks and hooks, whether each takes keyword arguments; None if there are others."""
    own = module.__dict__
    if (
        own["_backward_hooks"]
        or own["_backward_pre_hooks"]
        or own["_forward_hooks_always_called"]
        or own.get("_compiled_call_impl")
    ):
        return None
    before, after = own["_forward_pre_hooks_with_kwargs"], own["_forward_hooks_with_kwargs"]
    return (
        tuple(key in before for key in own["_forward_pre_hooks"]),
        tuple(key in after for key in own["_forward_hooks"]),
    )
