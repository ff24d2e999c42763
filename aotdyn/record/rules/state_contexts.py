"""Contexts of the process' state that have no effect once they are left: `warnings.catch_warnings`
and `numpy.errstate`. They are entered for the tracer alone. A frame that breaks within one breaks
where it is entered instead: what runs there eagerly must find the state."""

import re
import warnings
from typing import Any, NamedTuple

from ...package.arrays import np
from ..invoke import CONSTRUCTORS
from ..operation import is_none, truth
from ..signals import GraphBreak, Raised
from ..variables import Constant, ExceptionVariable, Known, ObjectVariable, Variable
from ..variables.library import BuiltVariable
from .table import rule

NONE = Constant(None)


class Entered(NamedTuple):
    """A context that is entered. filters: what was put before all filters for warnings, the newest
    last: (action, pattern of the text, category)."""

    context: Variable
    filters: list[tuple[str, re.Pattern | None, type]]
    step: int


# -- warnings.catch_warnings ------------------------------------------------------------


@rule(warnings.catch_warnings.__enter__, ObjectVariable)
def enter_warnings(t, self):
    module, told = self.attributes.get("_module"), self.attributes.get("_filter")
    is_plain = self.live is None and self.cls is warnings.catch_warnings
    is_entered = isinstance(self.attributes.get("_entered"), Constant) and truth(
        t, self.attributes["_entered"]
    )
    if not is_plain or is_entered or t.effects.only_own_changes or told is None:
        return NotImplemented
    module = t.realize(module)
    if not isinstance(module, Known) or module.value is not warnings:
        return NotImplemented
    if not is_none(t, told) or truth(t, self.attributes["_record"]):
        return NotImplemented
    t.effects.set_attribute(self, "_entered", Constant(True))
    # Those that are shown once only are shown again.
    t.effects.call("filters_changed")
    t.entered.append(Entered(self, [], t.step))
    return NONE


@rule(warnings.catch_warnings.__exit__, ObjectVariable)
def leave_warnings(t, self, *exc_info):
    if not t.entered or t.entered[-1].context is not self:
        return NotImplemented
    t.entered.pop()
    t.effects.call("filters_changed")
    return NONE


@rule(warnings.simplefilter)
def simple_filter(t, action, category=None, lineno=None, append=None):
    return _filter(t, action, None, category, (lineno, append))


@rule(warnings.filterwarnings)
def filter_warnings(t, action, message=None, category=None, module=None, lineno=None, append=None):
    return _filter(t, action, message, category, (module, lineno, append))


def _filter(t, action: Variable, message: Any, category: Any, others: tuple) -> Any:
    """Puts a filter before the others. The others: what must be left out, or say nothing."""
    caught = _caught(t)
    if caught is None or any(each is not None and t.constant(each) for each in others):
        return NotImplemented
    kind = Warning if category is None else t.constant(category)
    text = "" if message is None else t.constant(message)
    wanted = t.constant(action)
    is_kind = isinstance(kind, type) and issubclass(kind, Warning)
    if wanted not in ("ignore", "error") or not is_kind or type(text) is not str:
        return NotImplemented
    pattern = re.compile(text, re.IGNORECASE) if text else None
    caught.filters.append((wanted, pattern, kind))
    return NONE


def _caught(t) -> Entered | None:
    """The innermost `catch_warnings` that is entered."""
    contexts = (each for each in reversed(t.entered) if isinstance(each.context, ObjectVariable))
    return next(contexts, None)


def is_ignored(t, message: Variable, kind: type[Warning], text: str) -> bool:
    """Whether a warning is ignored by what the frame has put before all filters. Raises Raised
    where it is an error."""
    for entered in reversed(t.entered):
        for action, pattern, category in reversed(entered.filters):
            if not issubclass(kind, category) or pattern is not None and not pattern.match(text):
                continue
            if action == "ignore":
                return True
            if isinstance(message, ExceptionVariable):
                raise Raised(message)
            t.raise_exception(kind, text)
    return False


# -- numpy.errstate ------------------------------------------------------------


def _unreached() -> None:
    raise GraphBreak("unknown_call", "numpy.errstate as a decorator")


def _make_errstate(t, cls: type, args: list, kwargs: dict) -> Variable:
    return t.new(BuiltVariable(cls, cls, args, kwargs, _unreached))


def _enter_errstate(t, self: BuiltVariable) -> Any:
    """What is ignored leaves no trace; anything else would have to be found out in the graph."""
    names = {"divide", "over", "under", "invalid", "all"}
    settings = [t.realize(each) for each in self.kwargs.values()]
    ignores = all(isinstance(each, Constant) and each.value == "ignore" for each in settings)
    if self.args or not ignores or not names.issuperset(self.kwargs):
        return NotImplemented
    t.entered.append(Entered(self, [], t.step))
    return NONE


def _leave_errstate(t, self: BuiltVariable, *exc_info: Variable) -> Any:
    if not t.entered or t.entered[-1].context is not self:
        return NotImplemented
    t.entered.pop()
    return NONE


if np is not None:
    CONSTRUCTORS[np.errstate] = _make_errstate
    rule(np.errstate.__enter__, BuiltVariable)(_enter_errstate)
    rule(np.errstate.__exit__, BuiltVariable)(_leave_errstate)
