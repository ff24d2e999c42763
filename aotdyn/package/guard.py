"""Guards: what must hold for a variant to be reused, as data: (kind, source, expected).

`text` gives the boolean expression of a guard; `check.py` of the tracer joins them into one
function, and the runtime evaluates them one by one to explain a miss. Kinds are rows of KINDS.
"""

import math
from collections.abc import Callable
from typing import Any

from .frozen import frozen
from .own_builtins import BUILTINS as __builtins__  # noqa: F401
from .reference import (
    Classes,
    CodeOf,
    Import,
    Literal,
    Reference,
    Runtime,
    State,
    Tensors,
    int_text,
)
from .source import Attribute, Namer, Source


@frozen
class Guard:
    """One condition.

    kind: a key of KINDS. source: the value that is looked at, None for the process' state.
    expected: what it must be; the meaning depends on the kind. user: `file:line` that asked for it.
    """

    kind: str
    source: Source | None
    expected: Any = None
    user: str = ""

    def text(self, name: Namer, value: Callable[[Source], str] | None = None) -> str:
        """The condition as an expression. `value` gives the expression of a source, by default
        its full text."""
        value = value or (lambda source: source.text(name))
        return KINDS[self.kind](self, name, value)


def _type(guard, name, value):
    return f"type({value(guard.source)}) is {name(guard.expected)}"


def _is(guard, name, value):
    return f"{value(guard.source)} is {name(guard.expected)}"


def _equal(guard, name, value):
    """An object that is made anew each time: made of the same parts."""
    alike, expected = name(Runtime("made_alike")), name(guard.expected)
    return f"{alike}({value(guard.source)}, {expected})"


def _equals(guard, name, value):
    """Type and value; a float by its bits, so that nan equals itself and -0.0 is not 0.0."""
    text, expected = value(guard.source), guard.expected
    if expected is None or expected is True or expected is False or expected is Ellipsis:
        return f"{text} is {expected!r}"
    kind = type(expected).__name__
    if type(expected) is float:
        if expected and math.isfinite(expected):
            return f"type({text}) is float and {text} == {expected!r}"
        if expected == expected:
            return f"type({text}) is float and {text}.hex() == {expected.hex()!r}"
        # A nan has a sign, which `copysign` shows and nothing else does.
        return f"{name(Runtime('same_value'))}({text}, {name(Literal(expected))})"
    if type(expected) is int:
        return f"type({text}) is int and {text} == {int_text(expected)}"
    if type(expected) in (str, bytes):
        return f"type({text}) is {kind} and {text} == {expected!r}"
    return f"{name(Runtime('same_value'))}({text}, {name(Literal(expected))})"


def _length(guard, name, value):
    return f"len({value(guard.source)}) == {guard.expected}"


def _key(key, name):
    """A dict's key as an expression; keys known by identity are references."""
    return name(key if isinstance(key, Reference) else Literal(key))


def _keys(guard, name, value):
    """The keys of a dict and their order; strings compare by value, others by type as well."""
    keys = guard.expected
    text = value(guard.source)
    if all(type(key) is str for key in keys):
        return f"(*{text},) == {name(Literal(tuple(keys)))}"
    listed = "".join(f"{_key(key, name)}, " for key in keys)
    return f"{name(Runtime('same_keys'))}({text}, ({listed}))"


def _membership(operator: str) -> Callable[..., str]:
    """Whether a key is there, or is not."""

    def text(guard, name, value):
        key = guard.expected
        shown = repr(key) if type(key) is str else _key(key, name)
        return f"{shown} {operator} {value(guard.source)}"

    return text


def _subclass(guard, name, value):
    """expected: (class, answer) of `issubclass`, where the class decides that itself."""
    cls, answer = guard.expected
    return f"issubclass({value(guard.source)}, {name(cls)}) is {answer!r}"


def _found(guard, name, value):
    """The keys of a dict, or the members of a set, have the hash that they were put there with."""
    return f"{name(Runtime('all_found'))}({value(guard.source)})"


def _members(guard, name, value):
    """The members of a set, as references where they are known by identity; in any order."""
    listed = "".join(f"{_key(each, name)}, " for each in guard.expected)
    return f"{name(Runtime('same_members'))}({value(guard.source)}, ({listed}))"


def _empty(guard, name, value):
    return f"not {value(guard.source)}"


def _empty_cell(guard, name, value):
    """A closure cell without contents equals a new one."""
    return f"{value(guard.source)} == {name(Import('types', 'CellType'))}()"


def _slot(negation: str) -> Callable[..., str]:
    """Whether the slot with a name holds something, in an object of a known class without a
    `__getattr__`."""

    def text(guard, name, value):
        return f"{negation}hasattr({value(guard.source)}, {guard.expected!r})"

    return text


def _in_context(operator: str) -> Callable[..., str]:
    """Whether a `ContextVar` is set in the present context, or is not."""

    def text(guard, name, value):
        return f"{value(guard.source)} {operator} {name(Import('contextvars', 'copy_context'))}()"

    return text


def _no_end(guard, name, value):
    """A value of which the program does not see when it goes."""
    return f"not {name(Runtime('has_end'))}({value(guard.source)})"


def _no_view(guard, name, value):
    """A bytearray, an array or bytes in memory that can be resized."""
    return f"not {name(Runtime('has_view'))}({value(guard.source)})"


def _no_end_at(guard, name, value):
    """A dict has no item under the key that is expected, or one without an end."""
    key = _key(guard.expected, name)
    return f"not {name(Runtime('has_end'))}({value(guard.source)}.get({key}))"


def _nonempty(guard, name, value):
    return f"not not {value(guard.source)}"


def _array(guard, name, value):
    """How an array of NumPy is laid out. expected: type, sizes, strides, and whether it can be
    written to."""
    text, (dtype, shape, strides, writeable) = value(guard.source), guard.expected
    told = f"{text}.dtype.str == {dtype!r} and {text}.shape == {shape!r}"
    return f"{told} and {text}.strides == {strides!r} and {text}.flags.writeable is {writeable!r}"


def _holds(guard, name, value):
    """What an array of NumPy holds, in the order of its indices."""
    return f"{value(guard.source)}.tobytes() == {guard.expected!r}"


def _left(operator: str) -> Callable[..., str]:
    """How many values an iterator of C over a sequence has left."""

    def text(guard, name, value):
        return f"{value(guard.source)}.__length_hint__() {operator} {guard.expected}"

    return text


def _left_of_table(operator: str) -> Callable[..., str]:
    """How many values an iterator of C over a table has left, if the table has not changed so that
    it raises."""

    def text(guard, name, value):
        return f"{name(Runtime('left'))}({value(guard.source)}) {operator} {guard.expected}"

    return text


def _same(guard, name, value):
    return f"{value(guard.source)} is {value(guard.expected)}"


def _distinct(guard, name, value):
    return f"{value(guard.source)} is not {value(guard.expected)}"


def _different(guard, name, value):
    """expected: sources of objects of which no two are the same."""
    sources = guard.expected
    listed = "".join(f"{value(source)}, " for source in sources)
    return f"len({{*map(id, ({listed}))}}) == {len(sources)}"


def _code(guard, name, value):
    """A function without a name in any module: its code is compared by hash."""
    return f"{name(Runtime('code_is'))}({value(guard.source)}, {guard.expected!r})"


def _codes(guard, name, value):
    """expected: references to functions that were inlined: none has been given another code."""
    return " and ".join(f"{name(f)}.__code__ is {name(CodeOf(f))}" for f in guard.expected)


def _shape(guard, name, value):
    """expected: a template with {0}, {1}, … and the sources that fill it."""
    template, sources = guard.expected
    return template.format(*map(value, sources))


def _tensors(guard, name, value):
    """expected: the sources of the tensors and their `TensorMeta`s, in one check."""
    sources, metas = guard.expected
    return f"{name(Tensors(metas))}({', '.join(map(value, sources))})"


def _state(guard, name, value):
    return f"{name(State(guard.expected))}()"


def _classes(guard, name, value):
    """expected: a tuple of `ClassFacts`."""
    return f"{name(Classes(guard.expected))}()"


def _class_like(guard, name, value):
    """A class without a name in other processes. expected: a `ClassLike`."""
    return f"{name(guard.expected)}({value(guard.source)})"


# The registries in which a call of a module looks for hooks.
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def _no_hooks(guard, name, value):
    """A module without hooks, and without a call replaced by `Module.compile`."""
    own = value(Attribute(guard.source, "__dict__"))
    hooks = " or ".join(f"{own}[{registry!r}]" for registry in HOOKS)
    call = "'_compiled_call_impl'"
    return f"not ({hooks} or {call} in {own} and {own}[{call}])"


def _hooks(guard, name, value):
    """A module's forward hooks: how many, and which of them take keyword arguments."""
    return f"{name(Runtime('hook_kinds'))}({value(guard.source)}) == {guard.expected!r}"


def _told(guard, name, value):
    """A warning is told, and that is all. expected: its class, its text, whether a list gets it."""
    category, text, listed = guard.expected
    return f"{name(Runtime('is_only_told'))}({name(category)}, {text!r}, {listed})"


def _no_global_hooks(guard, name, value):
    return f"{name(Runtime('no_global_hooks'))}()"


KINDS: dict[str, Callable[..., str]] = {
    "EMPTY_CELL": _empty_cell,
    "SLOT": _slot(""),
    "EMPTY_SLOT": _slot("not "),
    "TYPE": _type,
    "IS": _is,
    "EQUALS": _equals,
    "EQUAL": _equal,
    "LENGTH": _length,
    "KEYS": _keys,
    "HAS": _membership("in"),
    "LACKS": _membership("not in"),
    "SUBCLASS": _subclass,
    "FOUND": _found,
    "MEMBERS": _members,
    "EMPTY": _empty,
    "NONEMPTY": _nonempty,
    "ARRAY": _array,
    "HOLDS": _holds,
    "NO_END": _no_end,
    "NO_END_AT": _no_end_at,
    "NO_VIEW": _no_view,
    "SET": _in_context("in"),
    "UNSET": _in_context("not in"),
    "LEFT": _left(">="),
    "LEFT_MOST": _left("<="),
    "ENDS": _left("=="),
    "TABLE_LEFT": _left_of_table(">="),
    "TABLE_ENDS": _left_of_table("=="),
    "SAME": _same,
    "DISTINCT": _distinct,
    "DIFFERENT": _different,
    "CODE": _code,
    "CODES": _codes,
    "SHAPE": _shape,
    "TENSORS": _tensors,
    "STATE": _state,
    "CLASSES": _classes,
    "CLASS_LIKE": _class_like,
    "NO_HOOKS": _no_hooks,
    "HOOKS": _hooks,
    "NO_GLOBAL_HOOKS": _no_global_hooks,
    "TOLD": _told,
}
