"""Sources: how a value is reached from a frame. Immutable nodes with one answer, `text`.

The value at record time, the guard's text, the reload code of a body and the stored form all
derive from the node. `text` takes `name`, which gives the name that a reference is bound to.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, dataclass_transform

from .frozen import T, frozen, plain_text
from .own_builtins import BUILTINS as __builtins__  # noqa: F401
from .reference import Import, Literal, Reference, Runtime

Namer = Callable[[Reference], str]


@dataclass(init=False, repr=False, eq=False)
class Source:
    """Base of all sources. `base` is the source this one is reached from, None at a root."""

    __slots__ = ("_hash",)

    @property
    def base(self) -> "Source | None":
        return None

    def step(self, base: str, name: Namer) -> str:
        """The expression for this value, given the expression for its base."""
        raise NotImplementedError

    def text(self, name: Namer) -> str:
        base = self.base
        return self.step("" if base is None else base.text(name), name)


@dataclass_transform(frozen_default=True)
def node(cls: T) -> T:
    """A frozen class that computes its hash once: the tracer looks sources up all the time, and
    they are long chains."""
    made = frozen(cls)
    compute, keep = made.__hash__, Source._hash.__set__

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            keep(self, compute(self))
            return self._hash

    made.__hash__ = __hash__
    return made


@node
class Local(Source):
    """A frame value under the name it has in `check` and `body`."""

    name: str

    def step(self, base: str, name: Namer) -> str:
        return self.name


@node
class Bound(Source):
    """The object that a reference resolves to."""

    reference: Reference

    def step(self, base: str, name: Namer) -> str:
        return name(self.reference)


@node
class Derived(Source):
    """Base of the sources that start from another one."""

    of: Source

    @property
    def base(self) -> Source:
        return self.of


@node
class Attribute(Derived):
    """`of.name`, only for attributes that run no user code: slots, cells, functions, tensors."""

    name: str

    def step(self, base: str, name: Namer) -> str:
        return f"{base}.{self.name}"


@node
class Item(Derived):
    """`of[key]` of an exact list, tuple or dict; key is a plain value (see `values.py`)."""

    key: Any

    def step(self, base: str, name: Namer) -> str:
        return f"{base}[{plain_text(self.key)}]"


@node
class ReferredItem(Derived):
    """`of[key]` of an exact dict whose key is an object named by a reference."""

    key: Reference

    def step(self, base: str, name: Namer) -> str:
        return f"{base}[{name(self.key)}]"


@node
class TypeOf(Derived):
    """`type(of)`."""

    def step(self, base: str, name: Namer) -> str:
        return f"type({base})"


@node
class Size(Derived):
    """The size of a tensor in dimension `dim`."""

    dim: int

    def step(self, base: str, name: Namer) -> str:
        return f"{base}.size({self.dim})"


@node
class Stride(Derived):
    """The stride of a tensor in dimension `dim`, in elements."""

    dim: int

    def step(self, base: str, name: Namer) -> str:
        return f"{base}.stride({self.dim})"


@node
class StorageOffset(Derived):
    """The storage offset of a tensor, in elements."""

    def step(self, base: str, name: Namer) -> str:
        return f"{base}.storage_offset()"


@node
class OwnDict(Derived):
    """The instance's own dictionary, where the class overrides how attributes are read."""

    def step(self, base: str, name: Namer) -> str:
        return f"{name(Runtime('own_dict'))}({base})"


@node
class FromArray(Derived):
    """A tensor that shares the memory of an array of NumPy."""

    def step(self, base: str, name: Namer) -> str:
        return f"{name(Import('torch', 'from_numpy'))}({base})"


@node
class Bare(Derived):
    """The plain value that an instance of a subclass of int, float, complex, str or bytes holds."""

    def step(self, base: str, name: Namer) -> str:
        return f"{name(Runtime('bare'))}({base})"


@node
class WaitsAt(Derived):
    """The state of a generator that waits, and that a body has made."""

    def step(self, base: str, name: Namer) -> str:
        return f"{name(Runtime('waits_at'))}({base})"


@node
class Contents(Derived):
    """What an instance of a dict subclass holds, as a dict, where the class overrides reading."""

    def step(self, base: str, name: Namer) -> str:
        return f"{name(Runtime('contents'))}({base})"


@node
class Called(Derived):
    """What a function with a cache gives for these plain arguments."""

    args: tuple[Any, ...] = ()
    kwargs: tuple[tuple[str, Any], ...] = ()

    def step(self, base: str, name: Namer) -> str:
        args = [name(Literal(value)) for value in self.args]
        args += [f"{key}={name(Literal(value))}" for key, value in self.kwargs]
        return f"{base}({', '.join(args)})"


@node
class Referent(Derived):
    """What a weak reference refers to, None when that is gone."""

    def step(self, base: str, name: Namer) -> str:
        return f"{base}()"


@node
class ContextValue(Derived):
    """What a `ContextVar` is set to in the present context, its default aside."""

    def step(self, base: str, name: Namer) -> str:
        return f"{name(Import('contextvars', 'copy_context'))}()[{base}]"


@node
class ValueAt(Derived):
    """The value at a place in the order of a dict whose keys differ between processes."""

    index: int

    def step(self, base: str, name: Namer) -> str:
        return f"(*{base}.values(),)[{self.index}]"


@node
class Listed(Derived):
    """The keys of a dict or the members of a set, in order, as a tuple; or a dict's values."""

    values: bool = False

    def step(self, base: str, name: Namer) -> str:
        return f"(*{base}{'.values()' if self.values else ''},)"


@node
class Ordered(Derived):
    """The members of a set as a tuple, in an order that depends on nothing but what they hold."""

    def step(self, base: str, name: Namer) -> str:
        return f"{name(Runtime('in_order'))}({base})"


@node
class Over(Derived):
    """What an iterator of C over a sequence or a table runs over, or a `MappingProxyType` reads."""

    def step(self, base: str, name: Namer) -> str:
        return f"{name(Runtime('over'))}({base})"


@node
class Ahead(Derived):
    """What an iterator of C over a sequence or a table will give after so many other values."""

    index: int

    def step(self, base: str, name: Namer) -> str:
        return f"{name(Runtime('ahead'))}({base}, {self.index})"


def instance_item(of: Source, name: str) -> Item:
    """The instance attribute `name`, read without running user code."""
    return Item(Attribute(of, "__dict__"), name)
