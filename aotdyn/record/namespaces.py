"""Global and builtin names, and imports."""

import builtins
import importlib.util
import sys
from types import FunctionType, ModuleType
from typing import Any

from ..package import own_builtins
from ..package.reference import Globals, Import
from ..package.source import Attribute, Bound, Item, Source
from .frame import Frame
from .live_dicts import dict_item
from .members import MISSING, is_data_descriptor, lookup, static_lookup
from .opcodes.stack import unbound_name
from .operation import apply
from .own_operators import can_be_asked
from .signals import GraphBreak
from .variables import Constant, DictVariable, Known, Variable

_BUILTINS = Attribute(Bound(Import("builtins")), "__dict__")
# What import statements call, unless the program has replaced it.
_OWN_IMPORT = Import(own_builtins.__name__, "__import__")


class Namespaces:
    """Looks names up as a frame does, and guards that they still mean the same."""

    def __init__(self, t):
        self.t = t

    def load_global(self, frame: Frame, name: str) -> Variable:
        """A global variable, or a builtin where there is none."""
        source = self._source(frame)
        found = self._variable(frame.globals, source, name)
        if found is not None:
            return found
        scope = frame.globals.get("__builtins__", builtins)
        scope = vars(scope) if isinstance(scope, ModuleType) else scope
        held = self.t.remembered_as(scope)
        if isinstance(held, DictVariable):
            found = dict_item(self.t, held, name)
            if found is not None:
                return found
        if name not in scope or isinstance(held, DictVariable):
            if scope is vars(builtins):
                self.t.guard("LACKS", _BUILTINS, name)
            unbound_name(self.t, name, f"name {name!r} is not defined")
        if scope is not vars(builtins):
            raise GraphBreak("no_source", f"builtins of its own for {name}")
        return self.t.lazy(scope[name], Item(_BUILTINS, name))

    def _variable(self, globals_: dict[str, Any], source: Source, name: str) -> Variable | None:
        """A global variable, None where there is none."""
        stored = self.t.effects.globals.get((id(globals_), name))
        if stored is not None:
            return stored[2]
        mapping = self._in_use(globals_)
        if mapping is not None:
            return dict_item(self.t, mapping, name)
        if name in globals_:
            return self.t.lazy(globals_[name], Item(source, name))
        self.t.guard("LACKS", source, name)
        return None

    def module_name(self, globals_: dict[str, Any]) -> Variable | None:
        """What a module calls itself, which classes and functions that are made there note; None
        where it does not."""
        source = globals_source(globals_, self.t.entry.globals)
        if source is None:
            raise GraphBreak("no_source", "the globals of a module that is not imported")
        return self._variable(globals_, source, "__name__")

    def store_global(self, frame: Frame, name: str, value: Variable) -> None:
        """Stores a global variable; it is written back after the graph."""
        mapping = self._in_use(frame.globals)
        if mapping is not None:
            self.t.effects.set_item(mapping, name, Constant(name), value)
            return
        self.t.effects.set_global(frame.globals, self._source(frame), name, value)

    def load_attribute(self, module: Known, name: str) -> Variable | None:
        """An attribute of a module: what its dictionary has; None where the module itself has to
        tell."""
        names = vars(module.value)
        held = self.t.remembered_as(names)
        if isinstance(held, DictVariable):
            # The program has got hold of it, and may have changed it.
            item = dict_item(self.t, held, name)
            if item is None and name in names:
                raise GraphBreak("attribute", f"{module.describe()}.{name}, deleted before")
            return item
        stored = self.t.effects.globals.get((id(names), name))
        if stored is not None:
            return stored[2]
        if self._is_of_class(module, name):
            return None
        source = Attribute(module.source or Bound(self.t.references.to(module.value)), "__dict__")
        if name in names:
            return self.t.lazy(names[name], Item(source, name))
        if static_lookup(type(module.value), name)[0] is MISSING:
            self._rely_on_lack(module.value, source, name)
        return None

    def _is_of_class(self, module: Known, name: str) -> bool:
        """Whether the class of a module decides what an attribute is, whatever the dictionary has.
        That modules have no such class is guarded, but of Python and torch."""
        kind = type(module.value)
        if kind is ModuleType:
            if not _is_of_library(module.value):
                source = module.source or Bound(self.t.references.to(module.value))
                self.t.guard("TYPE", source, Import("types", "ModuleType"))
            return False
        if isinstance(kind.__getattribute__, FunctionType):
            return True
        asked = can_be_asked(module.value)
        held = (lookup(self.t, kind, name) if asked else static_lookup(kind, name))[0]
        return held is not MISSING and is_data_descriptor(held)

    def _rely_on_lack(self, module: ModuleType, source: Source, name: str) -> None:
        """Guards that a module has no `__getattr__`, or the one that knows no such name. What one
        gives is asked for again at each call: it may put it in the module as well."""
        hook = vars(module).get("__getattr__")
        if hook is None:
            self.t.guard("LACKS", source, "__getattr__")
        elif not hasattr(module, name):
            self.t.realize(self.t.lazy(hook, Item(source, "__getattr__")))

    def store_attribute(self, module: Known, name: str, value: Variable) -> None:
        """Sets an attribute of a module, which is a global variable of its functions.

        Raises GraphBreak for modules of Python and torch: what they do depends on them.
        """
        unnamed = self.t.references_to(module.value) is None
        if _is_of_library(module.value) or name.startswith("__") or unnamed:
            raise GraphBreak("mutation", f"{name!r} of {module.describe()}")
        mapping = self._in_use(vars(module.value))
        if mapping is not None:
            self.t.effects.set_item(mapping, name, Constant(name), value)
            return
        source = Attribute(Bound(self.t.references.to(module.value)), "__dict__")
        self.t.effects.set_global(vars(module.value), source, name, value)

    def as_dict(self, frame: Frame) -> Variable:
        """`globals()`: from here on the names are looked up in the dict that it gives."""
        if any(key[0] == id(frame.globals) for key in self.t.effects.globals):
            raise GraphBreak("mutation", "globals() after a global variable was set")
        return self.t.realize(self.t.lazy(frame.globals, self._source(frame)))

    def _in_use(self, globals_: dict[str, Any]) -> DictVariable | None:
        """The dict of the globals, if the program has got hold of it."""
        held = self.t.remembered_as(globals_)
        return held if isinstance(held, DictVariable) else None

    def _source(self, frame: Frame) -> Source:
        if frame.globals_source is None:
            raise GraphBreak("no_source", f"the globals of {frame.code.co_qualname}")
        return frame.globals_source

    def import_name(
        self, frame: Frame, name: str, level: int, from_list: tuple[str, ...] | None
    ) -> Variable:
        """The module that an import statement binds, if it has been imported before."""
        if level:
            package = frame.globals.get("__package__") or ""
            name = importlib.util.resolve_name("." * level + name, package)
        module = sys.modules.get(name)
        if module is None or builtins.__import__ is not own_builtins.BUILTINS["__import__"]:
            raise GraphBreak("import", name)
        self.t.guard("IS", Item(_BUILTINS, "__import__"), _OWN_IMPORT)
        if from_list and hasattr(module, "__path__"):
            # It is this instruction that imports what a package does not have so far.
            for part in from_list:
                if part != "*" and not hasattr(module, part):
                    raise GraphBreak("import", f"{name}.{part}")
        if not from_list:
            name = name.partition(".")[0]
        imported = Item(Attribute(Bound(Import("sys")), "modules"), name)
        self.t.guard("IS", imported, Import(name))
        return Known(sys.modules[name], Bound(Import(name)))

    def import_from(self, module: Variable, name: str) -> Variable:
        """What `from module import name` binds."""
        known = self.t.realize(module)
        if not isinstance(known, Known) or not hasattr(known.value, name):
            raise GraphBreak("import", name)
        return apply(self.t, getattr, [known, Constant(name)])


def _is_of_library(module: ModuleType) -> bool:
    """Whether a module is one of Python or torch, or of Triton, which may have a stand-in."""
    root = str(vars(module).get("__name__")).partition(".")[0]
    return root in ("torch", "builtins", "triton") or root in sys.stdlib_module_names


def globals_source(globals_: dict[str, Any], entry_globals: dict[str, Any]) -> Source | None:
    """How the globals of a function are reached: they are a module's dictionary."""
    if globals_ is entry_globals:
        return Bound(Globals())
    # A module of C's own may call itself by its public name.
    for name in (globals_.get("__name__"), getattr(globals_.get("__spec__"), "name", None)):
        module = sys.modules.get(name) if isinstance(name, str) else None
        if module is not None and vars(module) is globals_:
            return Attribute(Bound(Import(name)), "__dict__")
    return None
