"""What generated checks and bodies call. `link.py` binds these by name (`Runtime` references)."""

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.modules import module as torch_module

from ..package.bare import bare
from ..package.iterators import ahead, left, over
from ..package.lifetimes import has_end, has_view
from ..package.made_classes import made_class, made_enum
from ..package.member_order import in_order
from ..package.messages import is_only_told
from ..package.modules import hook_kinds, hook_registries
from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401
from ..package.resolve import made_alike
from ..package.values import contents, same_value
from ..package.variant import code_hash, known_hashes
from ..package.waiting import waits_at
from .cpython import END
from .messages import filters_changed, log_at, warn_above, warn_at
from .restart import keep, require
from .steps import ended, handling, wait_on, waiting
from .tracebacks import thrown

__all__ = [
    "END", "Next", "Rest", "ahead", "all_found", "annotations", "bare", "code_is", "contents",
    "ended", "filters_changed", "handling", "has_end", "has_view", "hook_kinds", "in_inference",
    "in_order", "is_only_told", "keep", "leave", "left", "log_at", "made_alike", "made_class",
    "made_enum", "no_global_hooks", "no_hooks", "over", "own_dict", "require", "same_keys",
    "same_members", "same_value", "thrown", "wait_on", "waiting", "waits_at", "warn_above",
    "warn_at",
]  # fmt: skip


class Next(tuple):
    """What a body returns when the frame goes on in another entry: (entry, values). A tuple,
    because that is made without a Python frame."""

    __slots__ = ()


class Rest:
    """What a body returns when the rest of the frame runs as plain Python. values: a list that
    nothing else holds; the frame empties it. alone: so does all that it calls."""

    __slots__ = ("entry", "values", "alone")

    def __init__(self, entry: Any, values: list, alone: bool = False):
        self.entry = entry
        self.values = values
        self.alone = alone


def in_inference(graph: Callable, inputs: tuple) -> tuple:
    """What a graph gives in inference mode."""
    with torch.inference_mode():
        return graph(*inputs)


def code_is(function: Any, expected: str) -> bool:
    """Whether a function has the code with this hash."""
    code = function.__code__
    known = known_hashes.get(id(code))
    return (known[1] if known is not None else code_hash(code)) == expected


def same_keys(mapping: dict, keys: tuple) -> bool:
    """Whether a dict has these keys in this order; plain ones also of the same type."""
    if len(mapping) != len(keys):
        return False
    return all(
        key is expected or (type(key) is type(expected) and key == expected)
        for key, expected in zip(mapping, keys, strict=True)
    )


def leave(lock: Any) -> None:
    """Ends a `with` of a lock."""
    lock.__exit__(None, None, None)


def same_members(members: set | frozenset, expected: tuple) -> bool:
    """Whether a set has these members; plain ones also of the same type."""
    if len(members) != len(expected) or {*map(type, members)} != {*map(type, expected)}:
        return False
    held = {member: member for member in members if type(member) not in _NESTED}
    return all(
        (each in held and (held[each] is each or same_value(held[each], each)))
        if type(each) not in _NESTED
        else any(same_value(member, each) for member in members)
        for each in expected
    )


# What is in them may be hashed by code of the program.
_NESTED = (tuple, frozenset)


def all_found(table: dict | set | frozenset) -> bool:
    """Whether the keys of a dict, or the members of a set, have the hash that they were put there
    with. Calls `__hash__` of each."""
    return all(key in table for key in table)


def no_hooks(module: Any) -> bool:
    """Whether calling a module does nothing but run its `forward`."""
    own = module.__dict__
    return not (any(hook_registries(own)) or own.get("_compiled_call_impl"))


def no_global_hooks() -> bool:
    """Whether no hooks are registered for all modules of the process."""
    return not (
        torch_module._global_forward_hooks
        or torch_module._global_forward_pre_hooks
        or torch_module._global_backward_hooks
        or torch_module._global_backward_pre_hooks
    )


def annotations(pairs: tuple) -> dict:
    """A function's annotations from the flat tuple that MAKE_FUNCTION takes."""
    return dict(zip(pairs[::2], pairs[1::2], strict=True))


def own_dict(value: Any) -> dict:
    """An object's own dictionary, whatever its class does on attribute access."""
    if isinstance(value, threading.local):
        return value.__dict__  # the thread's own one
    return object.__getattribute__(value, "__dict__")
