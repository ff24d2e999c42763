"""What classes hold under a name: looked up along the MRO, guarded, and read as the class' own."""

import types
from typing import Any

from ..package.reference import Import, Live
from ..package.source import Attribute, Bound, Item
from .references import importable
from .signals import GraphBreak, Raised
from .stand_ins import stand_in_for
from .variables import DELETED, Constant, Variable
from .wrap import live_function

MISSING = object()
C_CALLABLES = (
    types.MethodDescriptorType, types.WrapperDescriptorType, types.BuiltinFunctionType,
)  # fmt: skip
C_MEMBERS = (types.MemberDescriptorType, types.GetSetDescriptorType)


def is_from(cls: type, package: str) -> bool:
    """Whether a class says that it was defined in a module of this package. It may say anything,
    or nothing."""
    module = getattr(cls, "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] == package


def static_lookup(cls: type, name: str) -> tuple[Any, type | None]:
    """What the classes of the MRO hold under a name, unbound, and which class holds it."""
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name], base
    return MISSING, None


def lookup(t, cls: type, name: str) -> tuple[Any, type | None]:
    """`static_lookup`, guarded: the name is still found there, as the same kind of value."""
    t.classes.lookup(cls, name)
    found = _present(t, cls, name)
    if found[1] is not None:
        # Whether it is a descriptor, and of which kind, is for its own class to say.
        for method in ("__get__", "__set__", "__delete__"):
            t.classes.lookup(type(found[0]), method)
    return found


def _present(t, cls: type, name: str) -> tuple[Any, type | None]:
    """`static_lookup`, after what the frame has set in classes."""
    for base in cls.__mro__ if t.effects.members else ():
        held = t.effects.members.get((base, name))
        if held is not None and held is not DELETED:
            return stand_in_for(t, held), base
        if held is None and name in base.__dict__:
            return base.__dict__[name], base
    return (MISSING, None) if t.effects.members else static_lookup(cls, name)


def member(t, cls: type, name: str, value: Any) -> Variable:
    """A class attribute that is its own value when read from the class; guarded."""
    stored = t.effects.member(cls, name)
    if stored is not None:
        return t.realize(stored)
    return t.realize(t.lazy(value, t.references.member_source(cls, name)))


def function_of(t, holder: Any, owner: type, cls: type, name: str, part: str) -> Variable:
    """The function inside a property, classmethod or staticmethod of a class; guarded."""
    function = getattr(holder, part)
    made = t.made_as(function)
    if made is not None:
        return made
    base = importable(owner)
    source = t.references.member_source(cls, name)
    if isinstance(holder, staticmethod | classmethod):
        if hasattr(type(function), "__get__") and not isinstance(function, types.FunctionType):
            # A class method of a descriptor, such as a property of the class.
            raise GraphBreak("attribute", f"{cls.__qualname__}.{name}")
        source = source if isinstance(holder, staticmethod) else Attribute(source, "__func__")
        return t.realize(t.lazy(function, source))
    if base is None or not isinstance(function, types.FunctionType):
        return t.realize(t.lazy(function, Attribute(source, part)))
    reference = Import(base.module, f"{base.qualname}.{name}.{part}")
    t.guard("IS", Attribute(source, part), reference)
    return live_function(t, function, Bound(reference), reference)


def member_raw(t, cls: type, owner: type, name: str, value: Any) -> Variable:
    """A descriptor object that the class holds, as a variable."""
    base = t.references.to(owner)
    if isinstance(base, Live):
        raise GraphBreak("no_source", f"{cls.__qualname__}.{name}")
    source = Item(Attribute(Bound(base), "__dict__"), name)
    return t.realize(t.lazy(value, source))


def is_property(value: Any) -> bool:
    """Whether a descriptor does what `property` does, and nothing of its own."""
    return isinstance(value, property) and type(value).__get__ is property.__get__


def is_own_dict(value: Any) -> bool:
    return isinstance(value, C_MEMBERS) and value.__name__ == "__dict__"


def is_data_descriptor(value: Any) -> bool:
    kind = type(value)
    return hasattr(kind, "__get__") and takes_stores(value)


def takes_stores(value: Any) -> bool:
    """Whether setting and deleting an attribute is for its descriptor to do."""
    return hasattr(type(value), "__set__") or hasattr(type(value), "__delete__")


def rely_on_subclass(t, kind: type, cls: type, answer: bool) -> None:
    """Guards what `issubclass` has said, where a class of Python may answer otherwise later."""
    if type(cls).__subclasscheck__ is not type.__subclasscheck__:
        t.guard("SUBCLASS", Bound(t.references.to(kind)), (t.references.to(cls), answer))


def no_attribute(t, self: Variable, name: str, text: str = "") -> None:
    """Raises the AttributeError of a failed access, with what it says and carries."""
    error = t.exception(
        AttributeError, text or f"{self.type.__name__!r} object has no attribute {name!r}"
    )
    error.attributes.update(name=Constant(name), obj=self)
    raise Raised(error)
