"""Why a variant does not cover a call: its guards one by one, in words."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from ..package.guard import HOOKS, Guard
from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401
from ..package.reference import (
    Classes,
    CodeOf,
    Import,
    Reference,
    State,
    TensorMeta,
    Tensors,
)
from ..package.source import Attribute, Item, Source
from .guards import explain_state, explain_tensors
from .link import Linked


@dataclass(frozen=True)
class Failure:
    """A guard that fails. subject: the value it is about; guard: what was expected; actual: what
    is there instead; user: `file:line` that asked for it; cure: what makes a recording cover the
    call; dims: the dimensions of a tensor in which nothing but the size differs."""

    subject: str
    guard: str
    actual: str
    user: str
    cure: str
    dims: tuple[int, ...] = ()

    def __str__(self) -> str:
        place = f"  # {self.user}" if self.user else ""
        return f"{self.guard}{f' ({self.actual})' if self.actual else ''}{place}"


class Explainer:
    """Evaluates the guards of one linked variant for given frame values."""

    def __init__(self, linked: Linked, values: tuple):
        self.linked = linked
        self.variant = linked.variant
        by_reference = {ref: name for name, ref in self.variant.names.items()}
        self.name = lambda reference: by_reference.get(reference, "<unnamed>")
        frame = dict(zip(self.variant.params, values, strict=True))
        self.scope = {"math": math, **linked.names, **frame}

    def first_failure(self) -> str:
        """The first guard that fails, with its source and the actual value; "" if none does."""
        return next(map(str, self._failures()), "")

    def failures(self) -> list[Failure]:
        """All guards that fail."""
        return list(self._failures())

    def _failures(self) -> Iterator[Failure]:
        for guard in sorted(self.linked.guards(), key=lambda g: g.kind == "SHAPE"):
            if guard.kind == "TENSORS":
                yield from self._explain_tensors(guard)
            else:
                failure = self._explain(guard)
                if failure is not None:
                    yield failure

    def _explain(self, guard: Guard) -> Failure | None:
        """Why a guard fails, None if it holds."""
        text, cure = guard.text(self.name), _RECORD
        try:
            if eval(text, self.scope):
                return None
            actual, cure = self._actual(guard), self._cure(guard)
        except Exception as error:
            # The path to the value is not there: that is the answer.
            actual = f"{type(error).__name__}: {error}"
        subject = describe_source(guard.source) if guard.source is not None else guard.kind
        return Failure(subject, describe_guard(guard), actual, guard.user, cure)

    def _actual(self, guard: Guard) -> str:
        if guard.kind == "STATE":
            state = self._state()
            return explain_state(state, self.scope[self.name(state)])
        if guard.kind == "CLASSES":
            return self.scope[self.name(Classes(guard.expected))].broken()
        if guard.kind == "CLASS_LIKE":
            return self.scope[self.name(guard.expected)].broken(self._value(guard.source))
        if guard.kind == "CODES":
            changed = [f for f in guard.expected if not self._has_its_code(f)]
            return ", ".join(f"{f.module}.{f.qualname} has another one" for f in changed)
        if guard.kind in ("SAME", "DISTINCT", "DIFFERENT"):
            return ""
        if guard.kind == "SHAPE":
            sources = guard.expected[1]
            return ", ".join(f"{describe_source(s)} is {self._value(s)!r}" for s in sources)
        if not isinstance(guard.source, Source):
            return ""
        value = self._value(guard.source)
        told = _TOLD.get(guard.kind)
        return told(value) if told is not None else f"it is {short(value)}"

    def _cure(self, guard: Guard) -> str:
        """What makes a recording cover a call that fails at this guard."""
        if guard.kind == "STATE":
            return "record this call as well, in the state that the process has now"
        if guard.kind in ("CODES", "CODE", "CLASSES", "CLASS_LIKE"):
            return "record again: what was traced has changed"
        if guard.kind == "EQUALS" and type(guard.expected) in (int, float):
            value = self._value(guard.source)
            if type(value) is type(guard.expected) and math.isfinite(value):
                return "record calls with other values of it too: a number that differs is symbolic"
        return _RECORD

    def _has_its_code(self, function: Import) -> bool:
        code = self.scope[self.name(CodeOf(function))]
        return self.scope[self.name(function)].__code__ is code

    def _value(self, source: Source) -> Any:
        return eval(source.text(self.name), self.scope)

    def _explain_tensors(self, guard: Guard) -> Iterator[Failure]:
        """One failure for each tensor that is not as it was recorded."""
        sources, metas = guard.expected
        seen: dict[int, str] = {}
        for source, meta in zip(sources, metas, strict=True):
            name = describe_source(source)
            try:
                tensor = self._value(source)
            except Exception as error:
                text = f"a tensor is not there: {type(error).__name__}: {error}"
                yield Failure(name, text, "", guard.user, _RECORD)
                continue
            why = explain_tensors(Tensors((meta,)), self._state(), (tensor,), [name])
            if not why and id(tensor) in seen:
                why = f"{name} and {seen[id(tensor)]} are the same tensor"
            seen[id(tensor)] = name
            if why:
                dims = _other_sizes(meta, tensor)
                cure = f"{mark_of(name, dims)}, or {_RECORD}" if dims else _RECORD
                yield Failure(name, why, "", guard.user, cure, dims)

    def _state(self):
        return next(ref for ref in self.variant.names.values() if isinstance(ref, State))


_RECORD = "record this call as well"


def _hooks_of(module: torch.nn.Module) -> str:
    names = [name for name in (*HOOKS, "_compiled_call_impl") if vars(module).get(name)]
    return f"it has {', '.join(names)}"


# kind of guard -> what is told of a value that fails it, besides the value itself
_TOLD: dict[str, Callable[[Any], str]] = {
    "TYPE": lambda value: f"it is {short(type(value))}",
    "LENGTH": lambda value: f"it is {len(value)}",
    "KEYS": lambda value: f"they are {short((*value,))}",
    "HAS": lambda value: "it is not there",
    "LACKS": lambda value: "it is there",
    "NO_HOOKS": _hooks_of,
}


def _other_sizes(meta: TensorMeta, tensor: Any) -> tuple[int, ...]:
    """The dimensions of a tensor that could be dynamic, if nothing but their sizes differs."""
    if not isinstance(tensor, torch.Tensor) or tensor.dim() != len(meta.size):
        return ()
    if str(tensor.dtype) != f"torch.{meta.dtype}" or tensor.requires_grad != meta.requires_grad:
        return ()
    sizes = enumerate(zip(meta.size, tensor.shape, strict=True))
    dims = tuple(dim for dim, (size, actual) in sizes if size is not None and size != actual)
    return dims if all(tensor.shape[dim] > 1 for dim in dims) else ()


def mark_of(name: str, dims: tuple[int, ...]) -> str:
    """The call that makes these sizes of a tensor symbolic."""
    shown = str(dims[0]) if len(dims) == 1 else str(list(dims))
    return f"aotdyn.mark_dynamic({name}, {shown}) while recording"


def _plain_name(reference: Reference) -> str:
    """A reference as people read it: a value or a name."""
    value = getattr(reference, "value", None)
    if hasattr(reference, "value"):
        return repr(value)
    qualname = getattr(reference, "qualname", "") or getattr(reference, "module", "")
    return qualname or getattr(reference, "what", "") or type(reference).__name__.lower()


def describe_source(source: Source) -> str:
    """A path as people read it: `self.layers.weight` for what an instance holds under the names of
    attributes, parameters, buffers and modules."""
    if isinstance(source, Item) and isinstance(source.key, str) and source.key.isidentifier():
        holder = source.of
        if isinstance(holder, Item) and holder.key in ("_parameters", "_buffers", "_modules"):
            holder = holder.of
        if isinstance(holder, Attribute) and holder.name == "__dict__":
            return f"{describe_source(holder.of)}.{source.key}"
    if source.base is None:
        return source.text(_plain_name)
    return source.step(describe_source(source.base), _plain_name)


_SINGLE = (None, True, False, ...)


def describe_guard(guard: Guard) -> str:
    """A guard as people read it: paths, and values or names instead of references."""
    if guard.kind == "EQUALS":
        operator = "is" if any(guard.expected is each for each in _SINGLE) else "=="
        return f"{describe_source(guard.source)} {operator} {_whole(guard.expected)}"
    if guard.kind == "KEYS":
        listed = ", ".join(map(_key, guard.expected)) + "," * (len(guard.expected) == 1)
        return f"the keys of {describe_source(guard.source)} are ({listed})"
    if guard.kind == "NO_HOOKS":
        return f"{describe_source(guard.source)} has no hooks"
    if guard.kind == "STATE":
        return "the process' state (gradient mode, autocast, defaults)"
    if guard.kind == "CLASSES":
        return "classes " + ", ".join(facts.order[0].partition(":")[2] for facts in guard.expected)
    if guard.kind == "CLASS_LIKE":
        name = str(guard.expected.order[0]).partition(":")[2]
        return f"{describe_source(guard.source)} is what the recorded {name} was"
    if guard.kind == "CODES":
        return "the code of " + ", ".join(function.qualname for function in guard.expected)
    if guard.kind == "IS" and isinstance(guard.expected, Import):
        whole = f"{guard.expected.module}.{guard.expected.qualname}".rstrip(".")
        return f"{describe_source(guard.source)} is {whole}"
    if guard.kind == "TENSORS":
        sources, metas = guard.expected
        return "tensors " + ", ".join(
            f"{describe_source(s)}: {m.dtype}{list(m.size)}"
            for s, m in zip(sources, metas, strict=True)
        )
    return guard.text(_plain_name, describe_source)


def _key(key: Any) -> str:
    return _plain_name(key) if isinstance(key, Reference) else _whole(key)


def _whole(value: Any) -> str:
    """A value's `repr`; hexadecimal where Python refuses to write out a number otherwise."""
    if _is_negative_nan(value):
        return "-nan"
    try:
        return repr(value)
    except ValueError:
        return hex(value) if type(value) is int else short(value)


def _is_negative_nan(value: Any) -> bool:
    """Whether a value is one whose sign guards see, and Python does not write."""
    return type(value) is float and value != value and math.copysign(1, value) < 0


def short(value: Any) -> str:
    """A value's `repr`, cut to one line."""
    if _is_negative_nan(value):
        return "-nan"
    try:
        text = repr(value)
    except Exception as error:
        return f"<{type(value).__name__}: repr failed: {error}>"
    text = text.replace("\n", " ")
    return text if len(text) <= 80 else f"{text[:77]}..."
