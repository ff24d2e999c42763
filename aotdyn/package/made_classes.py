"""Makes the classes of class statements whose hooks have been traced: while a frame is traced, and
again by its body."""

import abc
from typing import Any


def made_class(meta: type, name: str, bases: tuple, names: dict[str, Any], quiet: bool) -> type:
    """A class as `type.__new__` makes it, whatever its metaclass does. quiet: without a call of
    `__init_subclass__`.

    Raises TypeError where that needs a class of another layout than that of its bases.
    """
    make = abc.ABCMeta.__new__ if issubclass(meta, abc.ABCMeta) else type.__new__
    if not quiet:
        return make(meta, name, bases, names)
    made = make(meta, name, (_quiet(bases[0]), *bases), names)
    made.__bases__ = bases
    return made


def made_enum(meta: type, name: str, bases: tuple, names: dict[str, Any], **options: Any) -> type:
    """An enum class, as its class statement makes it."""
    prepared = meta.__prepare__(name, bases, **options)
    for each, value in names.items():
        prepared[each] = value
    return meta(name, bases, prepared, **options)


def _quiet(base: type) -> type:
    """A class with the layout of a base, which does nothing when it is inherited from."""
    of: type | None = base
    while of is not None and any("__init_subclass__" in vars(each) for each in of.__mro__[:-1]):
        of = of.__base__
    names = {"__init_subclass__": classmethod(lambda cls, **kwargs: None)}
    return type(of or object)("quiet", (of or object,), names)
