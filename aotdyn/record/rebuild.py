"""How each kind of value is rebuilt as a Python object by a body."""

import inspect
from types import ClassMethodDescriptorType, FunctionType
from typing import Any

from ..package.reference import Import, int_text
from .attributes import own_dict_of
from .body import (
    BodyWriter,
    dict_base,
    rebuilds,
    require_same_hashes,
    set_attribute,
    set_attributes,
)
from .operation import is_none
from .references import LITERALS, composition
from .set_tables import changed_again, making, since_replaced
from .signals import GraphBreak
from .variables import (
    DELETED,
    Alias,
    BackwardsIterator,
    CellVariable,
    Constant,
    DictVariable,
    EnumerateVariable,
    ExceptionVariable,
    FilterVariable,
    FixedIterator,
    FunctionVariable,
    GeneratorVariable,
    GroupVariable,
    InstanceDict,
    Known,
    ListVariable,
    MappingObject,
    MapVariable,
    MethodVariable,
    Null,
    ObjectVariable,
    OpenRange,
    OwnItems,
    RangeVariable,
    SequenceIterator,
    SetVariable,
    SliceVariable,
    SuperVariable,
    Symbolic,
    TensorVariable,
    TupleVariable,
    Variable,
    ViewVariable,
    ZipVariable,
)
from .write_back import EFFECTS, MOVE, tensor_effect

# -- plain values ------------------------------------------------------------


@rebuilds(Constant)
def _constant(w: BodyWriter, v: Constant) -> str:
    if v.value is Ellipsis or v.value is NotImplemented:
        return "..." if v.value is Ellipsis else "NotImplemented"
    return w.literal(v.value)


@rebuilds(Known)
def _known(w: BodyWriter, v: Known) -> str:
    return w.ref(w.t.references.to(v.value))


@rebuilds(Alias)
def _alias(w: BodyWriter, v: Alias) -> str:
    if w.t.references.is_made_of(v.value):
        return w.bind("alias", _composed(w, v.value))
    return _known(w, v)


def _composed(w: BodyWriter, value: Any) -> str:
    """What is made of classes that the body makes."""
    if type(value) in LITERALS:
        return w.literal(value)
    found = composition(value)
    if found is None or not w.t.references.is_made_of(value):
        return w.ref(w.t.references.to(value))
    how, parts = found
    texts = [_composed(w, part) for part in parts]
    if how == "union":
        return " | ".join(texts)
    if how == "list":
        return f"[{', '.join(texts)}]"
    return f"{texts[0]}[{', '.join(texts[1:]) or '()'}]"


@rebuilds(RangeVariable, OpenRange)
def _range(w: BodyWriter, v: RangeVariable) -> str:
    if isinstance(v, OpenRange) and v.known is None:
        return f"range({w.value(v.start)}, {w.value(v.stop)}, {v.step})"
    bounds = (v.value.start, v.value.stop, v.value.step)
    return f"range({', '.join(map(int_text, bounds))})"


@rebuilds(TensorVariable)
def _tensor(w: BodyWriter, v: TensorVariable) -> str:
    w.t.graph.require_unhooked(v)
    name = w.output(w.t.graph.tensor_name(v))
    w.known(v, name)
    w.lines += tensor_effect(w, v, name)
    return name


@rebuilds(Symbolic)
def _symbolic(w: BodyWriter, v: Symbolic) -> str:
    return w.output(w.t.graph.symbol_name(v))


@rebuilds(SliceVariable)
def _slice(w: BodyWriter, v: SliceVariable) -> str:
    return w.bind("part", f"slice({', '.join(map(w.value, v.items))})")


# -- containers ------------------------------------------------------------


@rebuilds(TupleVariable)
def _tuple(w: BodyWriter, v: TupleVariable) -> str:
    items = "".join(f"{w.value(item)}, " for item in v.items)
    if v.cls is tuple and v.origin >= 0 and all(isinstance(item, Constant) for item in v.items):
        # Python would make one object of all such constants.
        return w.bind("items", f"(*({items}),)" if items else "()")
    if v.cls is tuple:
        return w.bind("items", f"({items})")
    cls = w.ref(w.t.references.to(v.cls))
    if hasattr(v.cls, "_fields"):
        return w.bind("items", f"tuple.__new__({cls}, ({items}))")
    return w.bind("items", f"{cls}(({items}))")


@rebuilds(ListVariable)
def _list(w: BodyWriter, v: ListVariable) -> str:
    name = w.bind("items", "[]")
    w.known(v, name)
    items = [w.value(item) for item in v.items]
    if items:
        w.lines.append(f"{name} += [{', '.join(items)}]")
    return name


@rebuilds(DictVariable)
def _dict(w: BodyWriter, v: DictVariable) -> str:
    if v.cls is not dict:
        raise GraphBreak("reconstruct", v.cls.__qualname__, v.origin)
    require_same_hashes(v.items, v.origin)
    name = w.bind("items", "{}")
    w.known(v, name)
    for key, item in v.items.values():
        w.lines.append(f"{name}[{w.value(key)}] = {w.value(item)}")
    return name


@rebuilds(SetVariable)
def _set(w: BodyWriter, v: SetVariable) -> str:
    require_same_hashes(v.items, v.origin)
    made = making(v)
    known = {**since_replaced(v)[0], **v.items}
    items = "".join(f"{w.value(known[token])}, " for token in made.members)
    given = f"set(({items}))" if made.copied else f"({items})"
    name = w.bind("members", f"{v.cls.__name__}({given})")
    w.lines += changed_again(w, v, name, made.changes)
    return name


@rebuilds(ViewVariable)
def _view(w: BodyWriter, v: ViewVariable) -> str:
    return w.bind(v.kind, f"{w.value(v.of)}.{v.kind}()")


@rebuilds(CellVariable)
def _cell(w: BodyWriter, v: CellVariable) -> str:
    name = w.bind("cell", f"{w.ref(Import('types', 'CellType'))}()")
    w.known(v, name)
    if v.content is not None:
        w.fill_cell(name, v.content)
    return name


# -- iterators ------------------------------------------------------------


def _require_unchanged(w: BodyWriter, v: Variable) -> None:
    """What an iterator runs over must not be written back after the iterator is made: it would
    have begun with the old contents."""
    of = getattr(v.of, "of", v.of)
    if isinstance(of, OwnItems):
        _require_same_attributes(of, v)
    elif isinstance(v, FixedIterator) and isinstance(of, DictVariable | SetVariable):
        _require_same_keys(of, v)
    if id(of) in w.t.effects.changed:
        raise GraphBreak("reconstruct", "an iterator over what was changed", v.origin)


def _require_same_keys(of: DictVariable | SetVariable, v: FixedIterator) -> None:
    """An iterator remembers of how many values the table was that it goes through."""
    moved = any(isinstance(of, SetVariable) or kind != "set" for kind, *_ in of.changes[v.seen :])
    if moved or v.size not in (None, len(of.items)):
        raise GraphBreak("reconstruct", "an iterator over a table that has changed since", v.origin)


def _require_same_attributes(of: OwnItems, v: FixedIterator) -> None:
    """An iterator over an object's attributes is made before these are written back."""
    names = v.values[:: -1 if v.backwards else 1]
    owner = of.owner.owner
    if [*of.items] != names or owner.live is not None and [*own_dict_of(owner)] != names:
        raise GraphBreak("reconstruct", "an iterator over attributes that were changed", v.origin)


@rebuilds(SequenceIterator)
def _sequence_iterator(w: BodyWriter, v: SequenceIterator) -> str:
    ended = _ended(w, v) if v.exhausted else None
    if ended is not None:
        return ended
    if v.index:
        _require_unchanged(w, v)
    name = w.bind("iterator", f"iter({w.value(v.of)})")
    if v.index and v.of.type is memoryview:
        w.lines.append(f"for _ in range({v.index}): next({name})")
    elif v.index:
        w.lines.append(f"{name}.__setstate__({v.index})")
    return name


# What holds nothing, of the types whose iterators let go of them at their end.
_EMPTY = {
    list: "[]", tuple: "()", range: "range(0)", dict: "{}", set: "set()", frozenset: "set()",
    type({}.keys()): "{}.keys()", type({}.values()): "{}.values()", type({}.items()): "{}.items()",
    bytearray: "bytearray()",
}  # fmt: skip


def _ended(w: BodyWriter, v: SequenceIterator | FixedIterator) -> str | None:
    """An iterator at its end: whatever becomes of what it went through, nothing is left."""
    for kind, empty in _EMPTY.items():
        if issubclass(v.of.type, kind):
            backwards = isinstance(v, FixedIterator) and v.backwards
            return w.bind("iterator", f"{'reversed' if backwards else 'iter'}({empty})")
    return None


@rebuilds(FixedIterator)
def _fixed_iterator(w: BodyWriter, v: FixedIterator) -> str:
    ended = _ended(w, v) if v.ended else None
    if ended is not None:
        return ended
    _require_unchanged(w, v)
    function = "reversed" if v.backwards else "iter"
    name = w.bind("iterator", f"{function}({w.value(v.of)})")
    if v.index:
        w.lines.append(f"for _ in range({v.index}): next({name})")
    return name


@rebuilds(BackwardsIterator)
def _backwards_iterator(w: BodyWriter, v: BackwardsIterator) -> str:
    _require_unchanged(w, v)
    name = w.bind("iterator", f"reversed({w.value(v.of)})")
    if isinstance(v.of, RangeVariable):
        w.lines.append(f"{name}.__setstate__({len(v.of.value) - 1 - v.index})")
    elif v.index != len(v.of.items) - 1:
        w.lines.append(f"{name}.__setstate__({v.index})")
    return name


@rebuilds(EnumerateVariable)
def _enumerate(w: BodyWriter, v: EnumerateVariable) -> str:
    return w.bind("iterator", f"enumerate({w.value(v.inner)}, {w.value(v.count)})")


@rebuilds(ZipVariable)
def _zip(w: BodyWriter, v: ZipVariable) -> str:
    inner = "".join(f"{w.value(each)}, " for each in v.inner)
    return w.bind("iterator", f"zip({inner}strict={v.strict})")


@rebuilds(MapVariable)
def _map(w: BodyWriter, v: MapVariable) -> str:
    inner = ", ".join(map(w.value, v.inner))
    return w.bind("iterator", f"map({w.value(v.function)}, {inner})")


@rebuilds(FilterVariable)
def _filter(w: BodyWriter, v: FilterVariable) -> str:
    return w.bind("iterator", f"filter({w.value(v.function)}, {w.value(v.inner)})")


@rebuilds(GeneratorVariable)
def _generator(w: BodyWriter, v: GeneratorVariable) -> str:
    if v.started and not v.finished:
        return _waiting(w, v)
    args, kwargs = v.args
    parts = [w.value(arg) for arg in args]
    parts += [f"{name}={w.value(arg)}" for name, arg in kwargs.items()]
    name = w.bind("generator", f"{w.value(v.function)}({', '.join(parts)})")
    if v.finished:
        w.lines.append(f"{name}.close()")
    return name


def _waiting(w: BodyWriter, v: GeneratorVariable) -> str:
    """A generator that has run to one of its yields: it is made as it is there."""
    return w.bind("generator", f"{w.runtime('waiting')}({w.value(v.function)}, {_state(w, v)})")


def _state(w: BodyWriter, v: GeneratorVariable) -> str:
    """The place of a generator and the values of its frame there, as arguments."""
    frame = v.frame
    if v.running or v.handled is not None:
        raise GraphBreak("reconstruct", "a generator that is handling an exception", v.origin)
    place = frame.decoded.instructions[frame.index - 1]
    code = frame.code
    boxed = {*code.co_cellvars, *code.co_freevars}
    bound = {name: value for name, value in frame.locals.items() if value is not None}
    unbound = tuple(name for name in code.co_varnames if name not in bound and name not in boxed)
    values = ["None" if name in boxed or name in unbound else w.value(bound[name])
              for name in code.co_varnames]  # fmt: skip
    values += [w.value(frame.cells[name]) for name in (*code.co_cellvars, *code.co_freevars)]
    stack = tuple(not isinstance(value, Null) for value in frame.stack)
    values += [w.value(value) for value in frame.stack if not isinstance(value, Null)]
    return ", ".join([repr((place.start, stack, unbound)), *values])


def _generator_effect(w: BodyWriter, v: GeneratorVariable, target: str) -> list[str]:
    if v.finished:
        return [f"{w.runtime('ended')}({target})"]
    return [f"{w.runtime('wait_on')}({target}, {_state(w, v)})"]


EFFECTS[GeneratorVariable] = _generator_effect


# -- functions and objects ------------------------------------------------------------


@rebuilds(FunctionVariable)
def _function(w: BodyWriter, v: FunctionVariable) -> str:
    if v.code_reference is None or isinstance(v.code_reference, Import):
        raise GraphBreak("reconstruct", f"the function {v.qualname}", v.origin)
    source = w.t.globals_of(v)
    cells = "".join(f"{w.value(cell)}, " for cell in v.closure)
    defaults = w.value(v.defaults) if v.defaults is not None else "None"
    make = w.ref(Import("types", "FunctionType"))
    name = w.bind(
        v.name if v.name.isidentifier() else "function",
        f"{make}({w.ref(v.code_reference)}, {w.load(source)}, {v.name!r}, {defaults}, "
        f"({cells}){' or None' if not cells else ''})",
    )
    w.known(v, name)
    if v.kwdefaults is not None:
        w.lines.append(f"{name}.__kwdefaults__ = {w.value(v.kwdefaults)}")
    if v.annotations is not None:
        w.lines.append(
            f"{name}.__annotations__ = {w.runtime('annotations')}({w.value(v.annotations)})"
        )
    for attribute, item in v.attributes.items():
        w.lines.append(f"setattr({name}, {attribute!r}, {w.value(item)})")
    return name


@rebuilds(MethodVariable)
def _method(w: BodyWriter, v: MethodVariable) -> str:
    function = w.t.realize(v.function)
    self_ = w.value(v.self_)
    if isinstance(function, Known):
        name = function.value.__name__
        if isinstance(function.value, ClassMethodDescriptorType):
            holder = w.ref(w.t.references.to(function.value.__objclass__))
            return w.bind("method", f"{holder}.__dict__[{name!r}].__get__(None, {self_})")
        held = inspect.getattr_static(v.self_.type, name, None)
        if held is not function.value:
            # Reached past what the type defines, by `super()` or by name; or bound by hand.
            if hasattr(function.value, "__get__"):
                return w.bind("method", f"{w.value(function)}.__get__({self_})")
            made = w.ref(Import("types", "MethodType"))
            return w.bind("method", f"{made}({w.value(function)}, {self_})")
        owner = f"({self_})" if self_[:1].isdigit() else self_
        return w.bind("method", f"{owner}.{name}")
    return w.bind("method", f"{w.ref(Import('types', 'MethodType'))}({w.value(function)}, {self_})")


@rebuilds(SuperVariable)
def _super(w: BodyWriter, v: SuperVariable) -> str:
    return w.bind("above", f"super({w.ref(w.t.references.to(v.cls))}, {w.value(v.self_)})")


@rebuilds(ObjectVariable)
def _object(w: BodyWriter, v: ObjectVariable) -> str:
    cls = w.ref(w.t.references.to(v.cls))
    maker = "object" if v.cls.__new__ is object.__new__ or v.cls.__flags__ & 1 << 9 else cls
    name = w.bind(v.cls.__name__.lower(), f"{maker}.__new__({cls})")
    w.known(v, name)
    set_attributes(w, v, name)
    return name


@rebuilds(MappingObject)
def _mapping_object(w: BodyWriter, v: MappingObject) -> str:
    base = w.ref(dict_base(v.cls))
    name = w.bind(v.cls.__name__.lower(), f"{base}.__new__({w.ref(w.t.references.to(v.cls))})")
    w.known(v, name)
    contents = v.contents
    for key, item in map(contents.items.__getitem__, contents.below or contents.items):
        w.lines.append(f"{base}.__setitem__({name}, {w.value(key)}, {w.value(item)})")
    if contents.below is not None:
        for key, _ in contents.items.values():
            w.lines.append(f"{w.ref(MOVE)}({name}, {w.value(key)})")
    set_attributes(w, v, name)
    return name


@rebuilds(InstanceDict)
def _instance_dict(w: BodyWriter, v: InstanceDict) -> str:
    return w.bind("attributes", f"{w.runtime('own_dict')}({w.value(v.owner)})")


@rebuilds(ExceptionVariable, GroupVariable)
def _exception(w: BodyWriter, v: ExceptionVariable) -> str:
    if v.raised:
        # Its traceback leads to where it was.
        raise GraphBreak("exception", v.describe(), v.raised)
    # The list that a group was given may hold others by now.
    parts = [v.message, v.exceptions] if isinstance(v, GroupVariable) else v.args.items
    args = [w.value(part) for part in parts]
    cls = w.ref(w.t.references.to(v.cls))
    if isinstance(v.cls.__init__, FunctionType):
        # What `__init__` has done is in the attributes.
        name = w.bind("error", f"{cls}.__new__({', '.join([cls, *args])})")
    else:
        name = w.bind("error", f"{cls}({', '.join(args)})")
    w.known(v, name)
    if isinstance(v, GroupVariable):
        w.lines.append(f"{name}.args = {w.value(v.args)}")
    for attribute in ("cause", "context"):
        held = getattr(v, attribute)
        if held is not None:
            w.lines.append(f"{name}.__{attribute}__ = {w.value(held)}")
    if v.suppressed and v.cause is None:
        w.lines.append(f"{name}.__suppress_context__ = True")
    for attribute, item in v.attributes.items():
        if item is DELETED or attribute in _TOLD_LATER and is_none(w.t, item):
            continue
        w.lines.append(set_attribute(w, v.cls, name, attribute, w.value(item)))
    return name


# What an access that ends in the exception says of itself, where nothing was set.
_TOLD_LATER = ("name", "obj")
