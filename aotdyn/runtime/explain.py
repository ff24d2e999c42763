"""Why a variant does not cover a call: its guards one by one, in words."""

import math
from typing import Any

from ..package.guard import Guard
from ..package.reference import Classes, CodeOf, Import, Reference, State, Tensors
from ..package.source import Source
from .guards import explain_state, explain_tensors
from .link import Linked


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
        for guard in sorted(self.linked.guards(), key=lambda g: g.kind == "SHAPE"):
            text = self.explain(guard)
            if text:
                return text
        return ""

    def explain(self, guard: Guard) -> str:
        """Why a guard fails, "" if it holds."""
        if guard.kind == "TENSORS":
            return self._explain_tensors(guard)
        text = guard.text(self.name)
        try:
            if eval(text, self.scope):
                return ""
            actual = self._actual(guard)
        except Exception as error:
            # The path to the value is not there: that is the answer.
            actual = f"{type(error).__name__}: {error}"
        shown = describe_guard(guard)
        place = f"  # {guard.user}" if guard.user else ""
        return f"{shown}{f' ({actual})' if actual else ''}{place}"

    def _actual(self, guard: Guard) -> str:
        if guard.kind == "STATE":
            state = self._state()
            return explain_state(state, self.scope[self.name(state)])
        if guard.kind == "CLASSES":
            return self.scope[self.name(Classes(guard.expected))].broken()
        if guard.kind == "CODES":
            changed = [f for f in guard.expected if not self._has_its_code(f)]
            return ", ".join(f"{f.module}.{f.qualname} has another one" for f in changed)
        if guard.kind in ("SAME", "DISTINCT", "DIFFERENT"):
            return ""
        if guard.kind == "SHAPE":
            sources = guard.expected[1]
            return ", ".join(f"{s.text(self.name)} is {self._value(s)!r}" for s in sources)
        if not isinstance(guard.source, Source):
            return ""
        value = self._value(guard.source)
        return f"it is {short(type(value) if guard.kind == 'TYPE' else value)}"

    def _has_its_code(self, function: Import) -> bool:
        code = self.scope[self.name(CodeOf(function))]
        return self.scope[self.name(function)].__code__ is code

    def _value(self, source: Source) -> Any:
        return eval(source.text(self.name), self.scope)

    def _explain_tensors(self, guard: Guard) -> str:
        sources, metas = guard.expected
        names = [source.text(self.name) for source in sources]
        try:
            tensors = tuple(self._value(source) for source in sources)
        except Exception as error:
            return f"a tensor is not there: {type(error).__name__}: {error}"
        return explain_tensors(Tensors(metas), self._state(), tensors, names)

    def _state(self):
        return next(ref for ref in self.variant.names.values() if isinstance(ref, State))


def describe_guard(guard: Guard) -> str:
    """A guard as people read it: paths, and values or names instead of references."""

    def name(reference: Reference) -> str:
        value = getattr(reference, "value", None)
        if hasattr(reference, "value"):
            return repr(value)
        qualname = getattr(reference, "qualname", "") or getattr(reference, "module", "")
        return qualname or getattr(reference, "what", "") or type(reference).__name__.lower()

    if guard.kind == "EQUALS":
        return f"{guard.source.text(name)} == {guard.expected!r}"
    if guard.kind == "STATE":
        return "the process' state (gradient mode, autocast, defaults)"
    if guard.kind == "CLASSES":
        return "classes " + ", ".join(facts.order[0].partition(":")[2] for facts in guard.expected)
    if guard.kind == "CODES":
        return "the code of " + ", ".join(function.qualname for function in guard.expected)
    if guard.kind == "IS" and isinstance(guard.expected, Import):
        whole = f"{guard.expected.module}.{guard.expected.qualname}".rstrip(".")
        return f"{guard.source.text(name)} is {whole}"
    if guard.kind == "TENSORS":
        sources, metas = guard.expected
        return "tensors " + ", ".join(
            f"{s.text(name)}: {m.dtype}{list(m.size)}" for s, m in zip(sources, metas, strict=True)
        )
    return guard.text(name)


def short(value: Any) -> str:
    """A value's `repr`, cut to one line."""
    try:
        text = repr(value)
    except Exception as error:
        return f"<{type(value).__name__}: repr failed: {error}>"
    text = text.replace("\n", " ")
    return text if len(text) <= 80 else f"{text[:77]}..."
