"""Branches on tensors of which one side does nothing but raise: the other one is assumed. The body
asks after the graph whether that was right; where not, the frame starts over as plain Python, which
raises where the program does."""

from dataclasses import dataclass

import torch

from .body import BodyWriter
from .bytecode import Instruction
from .failures import is_caught
from .frame import Frame
from .hazards import can_undo, storage_of
from .operation import apply
from .signals import GraphBreak
from .variables import Constant, TensorVariable, Variable


@dataclass(frozen=True)
class Assumption:
    """A tensor that is true, or is not. step: of the root frame."""

    condition: TensorVariable
    holds: bool
    step: int
    places: tuple[str, ...]


class CheckedNumber(Variable):
    """The number in a tensor, of which nothing is asked so far but whether something holds. tensor:
    a copy, as int64 or float64."""

    __slots__ = ("tensor", "step", "places")

    def __init__(self, t, tensor: TensorVariable):
        super().__init__()
        self.tensor = tensor
        self.step = t.step
        self.places = t.frame.places()

    @property
    def kind(self) -> type:
        """Of which type the number is."""
        return float if self.tensor.fake.dtype.is_floating_point else int

    @property
    def type(self) -> type:
        raise self.asked()

    def asked(self) -> GraphBreak:
        """It is asked for itself: that breaks the graph where it is read from the tensor."""
        error = GraphBreak("tensor_value", "Tensor.item", self.step)
        error.places = self.places
        return error


class Verdict(CheckedNumber):
    """Whether something holds for such a number. tensor: of a bool."""

    __slots__ = ()

    def __init__(self, number: CheckedNumber, tensor: TensorVariable):
        Variable.__init__(self)
        self.tensor = tensor
        self.step, self.places = number.step, number.places


def is_checked_next(t) -> bool:
    """Whether the first branch behind the present instruction has a side that only raises, so that
    the other one may be assumed."""
    frame = t.frame
    if is_caught(frame) or t.graph.is_nested or t.effects.only_own_changes:
        return False
    instructions = frame.decoded.instructions
    for ins in instructions[frame.index + 1 : frame.index + _MOST]:
        if ins.opname.startswith("POP_JUMP"):
            sides = ins.index + 1, frame.decoded.at[ins.argval]
            return "NONE" not in ins.opname and len({_raises(frame, each) for each in sides}) == 2
        if "JUMP" in ins.opname or ins.opname in (*_LEAVES, "RAISE_VARARGS"):
            return False
    return False


def assume(t, frame: Frame, ins: Instruction, value: Variable, wanted: bool) -> bool | None:
    """The truth that is assumed of what a jump depends on, None where nothing is. wanted: the one
    with which it jumps."""
    value = t.realize(value)
    number = value if isinstance(value, CheckedNumber) else None
    value = number.tensor if number is not None else value
    if not isinstance(value, TensorVariable) or tuple(value.fake.shape) not in ((), (1,)):
        return None
    falls = _raises(frame, frame.index + 1)
    jumps = _raises(frame, frame.decoded.at[ins.argval])
    if falls is jumps or is_caught(frame) or t.graph.is_nested or t.effects.only_own_changes:
        if number is not None:
            raise number.asked()
        return None
    holds = wanted is falls
    condition = value
    if value.source is not None or value.fake.dtype is not torch.bool:
        condition = t.realize(apply(t, torch.ne, [value, Constant(0)]))
    t.assumptions.append(Assumption(condition, holds, t.step, frame.places()))
    return holds


# More instructions than it takes to make an exception with a long text.
_MOST = 200


def _raises(frame: Frame, index: int) -> bool:
    """Whether what begins at an instruction goes straight to raising an exception that the frame
    does not handle."""
    instructions = frame.decoded.instructions
    for ins in instructions[index : index + _MOST]:
        if ins.opname == "RAISE_VARARGS":
            return frame.decoded.handler(ins.offset) is None
        if "JUMP" in ins.opname or ins.opname in _LEAVES:
            return False
    return False


_LEAVES = ("RETURN_VALUE", "FOR_ITER", "YIELD_VALUE", "SEND", "RERAISE")


def write_assumptions(t, writer: BodyWriter) -> None:
    """The body is to ask whether what was assumed is so.

    Raises GraphBreak, to break at the first branch instead, where what the graph does by then could
    not be undone.
    """
    if not t.assumptions:
        return
    hazards = t.shapes.hazards
    hazards.raises_late |= hazards.draws or bool(hazards.changed)
    changed = [v for v in t.tensors if storage_of(v.fake) in hazards.changed]
    lasting = not can_undo(changed)
    for each in t.assumptions:
        if lasting or storage_of(each.condition.fake) in hazards.changed:
            told = each.condition.describe()
            raise GraphBreak("tensor_branch", told, each.step, each.places)
        writer.require(each.condition, each.holds)
