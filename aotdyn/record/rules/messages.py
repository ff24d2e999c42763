"""`logging` and `warnings`: a message that no logger wants leaves no trace; any other is told when
the effects of the frame are written back, in order, and from the place that it comes from."""

import logging
import operator
import os
import warnings
from typing import Any

import torch

from ...package.messages import is_only_told, list_of_warnings, may_raise, receivers
from ...package.reference import CodeOf, Import, Literal, Reference
from ...package.source import Attribute, Bound, Called, Source
from ..frame import Frame
from ..members import lookup
from ..operation import apply, is_none, truth
from ..polyfills import modules as polyfills
from ..signals import GraphBreak
from ..variables import (
    Constant,
    ExceptionVariable,
    Known,
    ObjectVariable,
    Symbolic,
    TextVariable,
    TupleVariable,
    Variable,
)
from .state_contexts import is_ignored
from .table import rule

NONE = Constant(None)

# -- where a message comes from ------------------------------------------------------------


def _above(frame: Frame | None, level: int, hidden: str = "") -> tuple[Frame | None, int]:
    """The program's frame so many levels up, the present one is at 0; or None, and how far above
    the entry's own frame it is. hidden: the file of frames that do not count.

    Raises GraphBreak where there are other frames in between than the tracer has.
    """
    while frame is not None:
        counts = not frame.is_polyfill and frame.code.co_filename != hidden
        if counts and not level:
            return frame, 0
        if frame.caller is not None and _is_called_by_torch(frame):
            raise GraphBreak("builtin_call", "a message from above the forward of a module")
        level -= counts
        frame = frame.caller
    return None, level + 1


def _is_called_by_torch(frame: Frame) -> bool:
    """Whether a frame may be that of a module's `forward`, which torch calls in frames of its own,
    or of what it has called in Python where the tracer has a polyfill."""
    if frame.is_polyfill:
        return frame.globals is vars(polyfills)
    first = frame.locals.get(frame.code.co_varnames[0]) if frame.code.co_argcount else None
    is_module = isinstance(first, ObjectVariable) and issubclass(first.type, torch.nn.Module)
    return is_module and frame.code.co_name == "forward"


def _place(frame: Frame) -> list[Reference | Source]:
    """The code of a frame, and the instruction at which it stands."""
    function = frame.function
    code: Any = CodeOf(None)
    if frame.caller is not None:
        code = function.code_reference if function is not None else None
        code = CodeOf(code) if isinstance(code, Import) else code
    if code is None or frame.globals_source is None:
        raise GraphBreak("no_source", f"the code of {frame.code.co_qualname}")
    return [code, Literal(frame.instruction.offset), frame.globals_source]


# -- warnings ------------------------------------------------------------


@rule(warnings.warn)
def warn(t, message, category=None, stacklevel=None, source=None):
    """Whether it is shown is found out at each call. That it raises breaks the graph."""
    message = t.realize(message)
    kind = _category(t, message, category)
    level = 1 if stacklevel is None else t.constant(apply(t, operator.index, [stacklevel]))
    if kind is None or level < 1 or source is not None and not is_none(t, source):
        raise GraphBreak("builtin_call", "warnings.warn")
    text = str(t.constant(apply(t, str, [message])))
    if is_ignored(t, message, kind, text):
        return NONE
    if may_raise(kind, text):
        raise GraphBreak("exception", f"a {kind.__name__} that filters turn into an exception")
    received = list_of_warnings()
    listed = received is not None
    if not is_only_told(kind, text, listed):
        raise GraphBreak("builtin_call", "a warning that the program shows itself")
    t.tell(received)
    reference = t.references.to(kind)
    t.guard("TOLD", None, (reference, text, listed))
    frame, beyond = _above(t.frame, level - 1)
    if frame is None:
        t.effects.call("warn_above", message, reference, Literal(beyond))
    else:
        t.effects.call("warn_at", message, reference, *_place(frame))
    return NONE


def _category(t, message: Variable, category: Variable | None) -> type[Warning] | None:
    """The class of a warning; None where it is not that of one."""
    if isinstance(message, ExceptionVariable):
        known = message.source is None and issubclass(message.type, Warning)
        return message.type if known else None
    if not isinstance(message, Constant | TextVariable) or message.type is not str:
        return None
    if category is None or is_none(t, category):
        return UserWarning
    category = t.realize(category)
    kind = category.value if isinstance(category, Known) else None
    return kind if isinstance(kind, type) and issubclass(kind, Warning) else None


# -- logging ------------------------------------------------------------


@rule(logging.Logger.isEnabledFor, ObjectVariable)
def is_enabled_for(t, self, level):
    """Asked again at each call: levels change, and loggers keep the answer."""
    if self.live is None or self.source is None or self.attributes:
        return NotImplemented
    wanted = t.constant(level)
    source = Called(Attribute(self.source, "isEnabledFor"), (wanted,))
    return t.lazy(self.live.isEnabledFor(wanted), source)


@rule(logging.getLogger)
def get_logger(t, name=None):
    args = () if name is None else (t.constant(name),)
    source = Called(Bound(Import("logging", "getLogger")), args)
    return t.lazy(logging.getLogger(*args), source)


@rule(logging.Logger._log, ObjectVariable)
def log(t, self, level, msg, args, exc_info=None, extra=None, stack_info=None, stacklevel=None):
    """What a logger wants that does what `logging` makes of it."""
    told = [value is not None and truth(t, value) for value in (exc_info, extra, stack_info)]
    own = (lookup(t, self.type, name)[1] is not logging.Logger for name in _OF_LOGGERS)
    if self.source is None or self.attributes or any(told) or any(own):
        return NotImplemented
    message, given = t.realize(msg), t.realize(args)
    if not _is_fixed(t, message) or not _is_fixed(t, given):
        return NotImplemented
    above = 1 if stacklevel is None else t.constant(stacklevel)
    frame, _ = _above(t.frame, max(above, 1) - 1, os.path.normcase(logging._srcfile))
    if frame is None:
        return NotImplemented
    code, offset, _ = _place(frame)
    t.tell(*receivers(self.live))
    t.effects.call("log_at", self, level, message, given, code, offset)
    return NONE


_OF_LOGGERS = ("makeRecord", "handle", "findCaller")


def _is_fixed(t, value: Variable) -> bool:
    """Whether a value has the same text whenever it is asked for it."""
    value = t.realize(value)
    if type(value) is TupleVariable and value.type is tuple:
        return all(_is_fixed(t, item) for item in value.items)
    return isinstance(value, Constant | TextVariable | Symbolic)
