"""The property that matters of guards: after one thing has changed, a traced function still does
what plain Python does.

Changes are written out as cases (`noticed`), or found: `changes` walks over all objects that the
arguments of a call reach, and changes them one at a time.
"""

import contextlib
import copy
import random
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import aotdyn
from aotdyn.record import unchanged
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.explain import short
from aotdyn.runtime.settings import Settings
from tests.conftest import Outcome, assert_agree, assert_same, perform

# -- cases ------------------------------------------------------------


def noticed(case: Callable, serve: Callable | None = None, in_place: bool = False) -> None:
    """Plays a case: a generator that yields (function, arguments) to be traced, then changes one
    thing and yields None (or new arguments), as often as it likes. Its parameter `mp` undoes
    changes. serve: gives what must agree with the function; by default it is traced. in_place:
    the traced function gets the objects themselves, in every call the same."""
    serve = serve or (lambda fn: compiled(fn, Settings("eager")))
    with pytest.MonkeyPatch.context() as mp:
        steps = case(mp)
        fn, args = next(steps)
        traced = serve(fn)
        _same_call(fn, traced, args, in_place)
        for changed in steps:
            args = args if changed is None else changed
            _same_call(fn, traced, args, in_place)
            _same_call(fn, traced, args, in_place)


def noticed_when_loaded(case: Callable, folder: Path) -> None:
    """Plays a case with a package that was made of its first call; misses run eagerly."""
    with pytest.MonkeyPatch.context() as mp, aotdyn.record(folder / "rec"):
        steps = case(mp)
        fn, args = next(steps)
        perform(compiled(fn, Settings("eager")), args, {})
        steps.close()
    try:
        aotdyn.pack([folder / "rec"], folder / "pkg")
    except aotdyn.AotdynError:
        pytest.skip("what was recorded belongs to this process")
    with aotdyn.load(folder / "pkg", on_miss="eager"):
        noticed(case)


def always_by_version(mp: pytest.MonkeyPatch) -> None:
    """From here on checks ask for the versions of all dictionaries that decide any guard, not only
    where that is cheaper."""
    mp.setattr(unchanged, "VERSION", 0)
    mp.setattr(unchanged, "ASKING", 0)


def _same_call(fn: Callable, traced: Callable, args: tuple, in_place: bool) -> None:
    assert_agree(perform(fn, args, {}), perform(traced, args, {}, in_place))


# -- changes that are found ------------------------------------------------------------


@dataclass
class Change:
    """One change, made and undone. what: its place and kind, in words."""

    what: str
    make: Callable[[], None]
    undo: Callable[[], None]


@dataclass
class Place:
    """Where a reachable object is held. mapping: the dict that it can be removed from by `key`."""

    path: str
    get: Callable[[], Any]
    set: Callable[[Any], None]
    mapping: dict | None = None
    key: Any = None
    siblings: list["Place"] = field(default_factory=list)


_LEAVES = (str, bytes, int, float, complex, bool, type(None), torch.dtype, torch.device, range)


def places(root: Any, limit: int = 5000) -> Iterator[Place]:
    """All places below a container, breadth first, each object once."""
    seen = {id(root)}
    pending = deque([("", root)])
    while pending and limit:
        path, holder = pending.popleft()
        held = list(_places_in(path, holder))
        for place in held:
            place.siblings = held
            limit -= 1
            yield place
            value = place.get()
            if not isinstance(value, _LEAVES) and id(value) not in seen:
                seen.add(id(value))
                pending.append((place.path, value))


def _places_in(path: str, holder: Any) -> Iterator[Place]:
    if isinstance(holder, list):
        yield from (_item(path, holder, index) for index in range(len(holder)))
    elif isinstance(holder, dict):
        yield from (_item(path, holder, key, removable=True) for key in list(holder))
    elif isinstance(holder, types.FunctionType):
        yield from _places_in_function(path, holder)
    elif isinstance(holder, type):
        yield from _places_in_class(path, holder)
    own = getattr(holder, "__dict__", None)
    if isinstance(own, dict) and not isinstance(holder, types.ModuleType | torch.Tensor):
        yield from (_item(path, own, key, removable=True) for key in list(own))
    if isinstance(holder, torch.Tensor) and isinstance(own, dict):
        yield from (_item(path, own, key, removable=True) for key in list(own))


def _places_in_function(path: str, function: types.FunctionType) -> Iterator[Place]:
    """Closure cells, defaults, and the globals that the code names."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with contextlib.suppress(ValueError):
            cell.cell_contents  # noqa: B018 - raises where it is empty
            yield Place(f"{path}<{name}>", lambda c=cell: c.cell_contents,
                        lambda v, c=cell: setattr(c, "cell_contents", v))  # fmt: skip
    if function.__defaults__:
        for index in range(len(function.__defaults__)):

            def store(value: Any, index=index) -> None:
                changed = list(function.__defaults__)
                changed[index] = value
                function.__defaults__ = tuple(changed)

            yield Place(f"{path}.__defaults__[{index}]",
                        lambda i=index: function.__defaults__[i], store)  # fmt: skip
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        foreign = isinstance(value, type) and not _is_of_tests(value)
        if value is not None and not foreign and not isinstance(value, types.ModuleType):
            yield _item(f"{path}.globals", function.__globals__, name)


_OF_EVERY_CLASS = ("__dict__", "__weakref__", "__module__", "__doc__", "__qualname__", "__slots__")
_SLOTS = (types.MemberDescriptorType, types.GetSetDescriptorType)


def _places_in_class(path: str, cls: type) -> Iterator[Place]:
    """The members of a class that the tests define."""
    for name, held in list(vars(cls).items()) if _is_of_tests(cls) else ():
        if name not in _OF_EVERY_CLASS and not isinstance(held, _SLOTS):
            yield Place(f"{path}.{name}", lambda n=name: vars(cls)[n],
                        lambda v, n=name: type.__setattr__(cls, n, v))  # fmt: skip


def _is_of_tests(cls: type) -> bool:
    return str(cls.__module__).startswith("tests.")


def _item(path: str, holder: Any, key: Any, removable: bool = False) -> Place:
    return Place(
        f"{path}[{short(key)}]", lambda: holder[key], lambda value: holder.__setitem__(key, value),
        holder if removable else None, key,
    )  # fmt: skip


def variations(value: Any) -> Iterator[tuple[str, Any]]:
    """Other values to put in a value's place: (kind of change, value)."""
    if isinstance(value, bool):
        yield "flipped", not value
        yield "as int", int(value)
    elif type(value) is int:
        yield "plus one", value + 1
        with contextlib.suppress(OverflowError):
            yield "as float", float(value)
    elif type(value) is float:
        yield "halved", value / 2 + 0.125
        yield "negated", -value
    elif isinstance(value, str):
        yield "another string", f"{value}_"
    elif value is None:
        yield "not None", 1
    elif isinstance(value, torch.Tensor):
        yield from _tensor_variations(value)
    elif type(value) is list:
        yield "one more", [*value, *value[-1:]]
        yield "one less", value[:-1]
        yield "as tuple", tuple(value)
    elif type(value) is tuple:
        yield "one less", value[:-1]
        yield "as list", list(value)
    elif isinstance(value, nn.Module):
        yield "an Identity", nn.Identity()
        with contextlib.suppress(Exception):  # some cannot be copied
            yield "of a subclass", _of_subclass(value)
    elif isinstance(value, types.FunctionType):
        yield "another function", lambda *args, **kwargs: args[0] if args else None
    elif isinstance(getattr(value, "__dict__", None), dict) and not isinstance(value, type):
        with contextlib.suppress(Exception):
            yield "of a subclass", _of_subclass(value)
    if value is not None:
        yield "None", None


def _tensor_variations(value: torch.Tensor) -> Iterator[tuple[str, Any]]:
    made = value.detach().clone()
    parameter = isinstance(value, nn.Parameter)

    def like(tensor: torch.Tensor, grad: bool = value.requires_grad) -> torch.Tensor:
        return nn.Parameter(tensor, grad) if parameter else tensor.requires_grad_(grad)

    if made.is_floating_point():
        yield "other data", like(made * 1.5 + 1)
        yield "in double", like(made.double())
        yield "grad flipped", like(made.clone(), not value.requires_grad)
    else:
        yield "in int32", made.to(torch.int32)
        yield "other data", made.clone().zero_()
    if made.dim():
        longer = torch.cat([made, made[-1:]]) if made.shape[0] else made.new_ones(1)
        yield "one longer", like(longer)
        yield "with a dimension more", like(made[None].clone())
        strided = made.new_empty([*made.shape, 2])[..., 0].copy_(made)
        yield "other strides", like(strided)
    if parameter:
        yield "a plain tensor", made


def _of_subclass(value: Any) -> Any:
    made = copy.copy(value)
    made.__class__ = type(f"{type(value).__name__}Below", (type(value),), {})
    return made


def changes_to_what_is_reached(roots: list, sample: int, seed: int = 0) -> list[Change]:
    """Changes to what some objects reach, not to which objects those are: functions with their
    globals, cells and defaults, classes of the tests with their members."""
    found = [change for root in roots for change in _changes_to_places([root])
             if not change.what.startswith("[0] ")]  # fmt: skip
    return random.Random(seed).sample(found, min(sample, len(found)))


def changes(args: list, sample: int | None = None, seed: int = 0) -> Iterator[Change]:
    """Changes to a list of arguments and everything that they reach, then to the process. sample:
    only so many of the former, drawn by chance."""
    found = list(_changes_to_places(args))
    found += _changes_to_modules(args)
    if sample is not None and len(found) > sample:
        found = random.Random(seed).sample(found, sample)
    yield from found
    yield from _changes_to_the_process()


def _changes_to_places(root: list) -> Iterator[Change]:
    for place in places(root):
        value = place.get()
        for kind, other in variations(value):
            yield _stored(place, value, other, kind)
        if place.mapping is not None:
            yield _removed(place, place.mapping)
        twin = _sibling(place, value)
        if twin is not None:
            yield _stored(place, value, twin, "the same as its neighbour")


def _stored(place: Place, before: Any, value: Any, kind: str) -> Change:
    return Change(
        f"{place.path} {kind}", lambda: place.set(value), lambda: place.set(before)
    )


def _removed(place: Place, mapping: dict) -> Change:
    before = list(mapping.items())

    def undo() -> None:
        # The order is part of what a dict is.
        mapping.clear()
        for key, value in before:
            mapping[key] = value

    return Change(f"{place.path} removed", lambda: mapping.__delitem__(place.key), undo)


def _sibling(place: Place, value: Any) -> Any:
    if isinstance(value, _LEAVES):
        return None
    others = (other.get() for other in place.siblings if other is not place)
    return next((o for o in others if type(o) is type(value) and o is not value), None)


def _changes_to_modules(args: list) -> list[Change]:
    """Hooks, the training flag, and methods of the classes of all modules."""
    found: list[Change] = []
    modules = {id(m): m for a in args if isinstance(a, nn.Module) for m in a.modules()}
    for module in modules.values():
        name = type(module).__name__
        for register in ("register_forward_hook", "register_forward_pre_hook"):
            found.append(_hooked(f"{name}.{register}", getattr(module, register)))
    for cls in dict.fromkeys(type(module) for module in modules.values()):
        found.append(_doubled(cls, "forward"))
    found.append(_doubled(nn.Module, "__call__"))
    found.append(_doubled(nn.functional, "linear"))
    return found


def _hooked(what: str, register: Callable) -> Change:
    handles: list = []

    def hook(module: nn.Module, inputs: tuple, output: Any = None) -> Any:
        value = output if output is not None else inputs
        return _scaled(value)

    return Change(what, lambda: handles.append(register(hook)), lambda: handles.pop().remove())


def _scaled(value: Any) -> Any:
    """A result with its tensors changed."""
    if isinstance(value, torch.Tensor):
        return value * 2 if value.is_floating_point() else value.clone()
    if type(value) in (tuple, list):
        return type(value)(map(_scaled, value))
    return value


def _doubled(owner: Any, name: str) -> Change:
    """A function is replaced by one that changes its result."""
    missing = object()
    before = vars(owner).get(name, missing)
    inner = getattr(owner, name)

    def replacement(*args: Any, **kwargs: Any) -> Any:
        return _scaled(inner(*args, **kwargs))

    def undo() -> None:
        if before is missing:
            delattr(owner, name)
        else:
            setattr(owner, name, before)

    what = f"{getattr(owner, '__name__', owner)}.{name} replaced"
    return Change(what, lambda: setattr(owner, name, replacement), undo)


def _changes_to_the_process() -> Iterator[Change]:
    contexts = {
        "no_grad": torch.no_grad, "inference_mode": torch.inference_mode,
        "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    }  # fmt: skip
    for name, make in contexts.items():
        stack = contextlib.ExitStack()
        yield Change(name, lambda s=stack, m=make: s.enter_context(m()), stack.close)
    yield Change("default dtype", lambda: torch.set_default_dtype(torch.float64),
                 lambda: torch.set_default_dtype(torch.float32))  # fmt: skip
    grad = torch.is_grad_enabled()
    yield Change("gradient mode", lambda: torch._C._set_grad_enabled(not grad),
                 lambda: torch._C._set_grad_enabled(grad))  # fmt: skip


def stale(
    function: Callable, served: Callable, args: list, made: Iterable[Change], in_place: bool = False
) -> list[str]:
    """The changes after which `served` is not what `function` is, in words. Where the function
    itself cannot cope with a change, the errors must be of one type. in_place: `served` is called
    with the objects themselves, before each change and after it."""
    found = []
    for change in made:
        if in_place:
            perform(served, tuple(args), {}, in_place)
        try:
            change.make()
        except (AttributeError, TypeError, LookupError):
            continue  # Some attributes cannot be set, some are not there any more.
        try:
            problem = _difference(function, served, tuple(args), in_place)
        finally:
            change.undo()
        if problem:
            found.append(f"{change.what}: {problem}")
    return found


def _difference(function: Callable, served: Callable, args: tuple, in_place: bool) -> str:
    try:
        expected = perform(function, args, {})
        assert_same(expected.args, expected.args)
        if in_place:
            # Copying modules mends some of what was broken in them.
            assert_same(args, args)
    except Exception:
        return ""  # The arguments cannot even be copied and looked at.
    actual = perform(served, args, {}, in_place)
    if expected.error is not None:
        same = type(actual.error) is type(expected.error)
        return "" if same else f"{expected.error!r} became {actual.error!r}"
    problem = _disagreement(expected, actual)
    if not problem:
        return ""
    if _disagreement(expected, perform(function, args, {})):
        return ""  # Nor does plain Python agree with itself.
    if in_place and not _disagreement(perform(function, args, {}, in_place), actual):
        # Copies are others than what was copied: made in inference mode, or mended.
        return ""
    return problem


def _disagreement(expected: Outcome, actual: Outcome) -> str:
    try:
        assert_agree(expected, actual)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return ""
