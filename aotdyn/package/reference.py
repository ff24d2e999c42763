"""References: how text that was generated in one process names an object of another one.

Generated checks, bodies and graphs have a table from the names they use to references. The
runtime resolves them when a variant is linked. Nothing here is ever named by `id()`.
"""

from typing import Any

from .arrays import SCALARS
from .frozen import frozen, plain_text
from .own_builtins import BUILTINS as __builtins__  # noqa: F401
from .point import Point


@frozen
class Import:
    """The object `qualname` of `module`; the module itself when `qualname` is empty."""

    module: str
    qualname: str = ""


@frozen
class Literal:
    """A plain value (see `values.py` for which).

    Two literals are equal when they are the same value of the same type: 1, True and 1.0 differ,
    0.0 and -0.0 differ, so do nan and -nan, each of which equals itself, and lists count by their
    contents.
    """

    value: Any

    def _identity(self) -> tuple[type, str | bytes]:
        kind = type(self.value)
        return kind, self.value.tobytes() if kind in SCALARS else plain_text(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())


@frozen
class Made:
    """What is made of other objects, equal each time: `list[int]`, `int | None`, `Flags(3)`.

    how: a row of `resolve.MAKERS`. parts: references to what it is made of.
    """

    how: str
    parts: tuple["Reference", ...]


@frozen
class CodeOf:
    """A code object: that of a function (or of the entry when `function` is None), or one nested
    in it.

    path: the index into `co_consts` at each level on the way down.
    """

    function: Import | None
    path: tuple[int, ...] = ()


@frozen
class EntryAt:
    """The continuation of the variant's own code object at a point."""

    point: Point


@frozen
class GraphOf:
    """The graph with this content hash, in whatever form the target has it."""

    id: str


@frozen
class Tensors:
    """A `TensorGuards` over tensors with these properties (`TensorMeta`), in order."""

    metas: tuple["TensorMeta", ...]


@frozen
class State:
    """A `GlobalStateGuard`, and the autocast and inference state that tensors were seen under.

    json: the text of its `__getstate__`.
    """

    json: str


@frozen
class Runtime:
    """A function that the runtime offers to generated text, by its name in `runtime/support.py`."""

    name: str


@frozen
class Verified:
    """What guards have found in the dictionaries that are reached from one root of a variant (see
    `runtime/verified.py`).

    root: the root's text, which tells the roots of a variant apart.
    """

    root: str


@frozen
class Globals:
    """The dictionary of globals of the entry's function."""


@frozen
class Live:
    """An object that only this process has. A variant that needs one cannot be packaged.

    what: a description for the report; index: its place among the live objects of the variant.
    """

    what: str
    index: int


@frozen
class TensorMeta:
    """What a tensor guard compares.

    size, stride: an entry is None where any value is accepted. cls: the tensor's class.
    dtype, device, layout: as in `str(torch.float32)` without the module, `str(device)`.
    keys: extra dispatch state, the names of `Conjugate`, `Negative`, `Inference`, if set.
    """

    dtype: str
    device: str
    requires_grad: bool
    size: tuple[int | None, ...]
    stride: tuple[int | None, ...]
    cls: Import = Import("torch", "Tensor")
    layout: str = "strided"
    keys: tuple[str, ...] = ()


@frozen
class ClassFacts:
    """What a trace has relied on in a class.

    order: the classes that it inherits from, itself first, named by `class_name`. members: (index
    into the MRO, name, kind) of names looked up in the namespaces of these classes; kind names the
    class of what was there, "" if there was nothing.
    """

    cls: Import | Live
    order: tuple[str, ...]
    members: tuple[tuple[int, str, str], ...]


@frozen
class Classes:
    """The check that all these facts hold."""

    facts: tuple[ClassFacts, ...]


@frozen
class ClassLike:
    """The check, of a class, that what a trace has relied on in one without a name holds of it.

    order: the classes that it inherits from, itself first: those without a name as `class_name`
    gives them. members: as in ClassFacts. own_dict: whether instances have a dictionary.
    """

    order: tuple[Import | str, ...]
    metaclass: Import
    members: tuple[tuple[int, str, str], ...]
    own_dict: bool


def int_text(value: int) -> str:
    """An int as Python's source: Python may refuse to write out long ones in decimal digits."""
    return hex(value) if value.bit_length() > 1000 else repr(value)


def class_name(cls: type) -> str:
    """A class as facts name it."""
    return f"{cls.__module__}:{cls.__qualname__}"


Reference = (
    Import | Literal | CodeOf | EntryAt | GraphOf | Tensors | State | Runtime | Globals | Live
    | Classes | ClassLike | Made | Verified
)  # fmt: skip
