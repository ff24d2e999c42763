"""`aotdyn.compile`: callables that are dispatched to variants instead of being run."""

import copy
import functools
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType
from typing import Any

from torch.nn import Module

from .. import markers
from ..package.modules import calls_are_torchs
from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401
from .cpython import internal, internal_name, parameter_count, suspends, trampoline_code
from .entry import dispatch
from .hook import hookless, switch_off
from .messages import module_calls
from .settings import Settings
from .support import no_global_hooks, no_hooks
from .suspended import driven

ORIGINAL = "__aotdyn_original__"


class _Unset:
    """The default of every parameter of a compiled function: the original's is read at the call,
    because it may be replaced at any time."""

    def __repr__(self) -> str:
        return "<default>"


UNSET = _Unset()


class _Use:
    """count: how often this process has compiled anything."""

    count = 0


use = _Use()


def compiled(target: Any, settings: Settings) -> Any:
    """The compiled form of a function, method, module or callable object.

    Raises TypeError for what cannot be called.
    """
    use.count += 1
    if isinstance(target, staticmethod | classmethod):
        return type(target)(compiled(target.__func__, settings))
    target = getattr(target, ORIGINAL, target)
    if isinstance(target, Module):
        return CompiledModule(target, settings)
    if isinstance(target, MethodType):
        return _compiled_method(target, settings)
    if isinstance(target, FunctionType):
        return compiled_function(target, settings)
    if isinstance(target, functools.partial):
        return functools.partial(compiled(target.func, settings), *target.args, **target.keywords)
    if isinstance(target, type) or not callable(target):
        raise TypeError(f"compile() takes a function, method or module, not {target!r}")
    call = type(target).__call__
    if isinstance(call, FunctionType):
        return MethodType(compiled_function(call, settings), target)
    # Implemented in C: there is no frame to trace.
    return target


def _compiled_method(method: MethodType, settings: Settings) -> Any:
    owner, function = method.__self__, method.__func__
    if isinstance(owner, Module) and function in (Module._call_impl, Module._wrapped_call_impl):
        return functools.partial(ModuleCall(settings), owner)
    if not isinstance(function, FunctionType):
        return method
    return MethodType(compiled_function(function, settings), owner)


def compiled_function(function: FunctionType, settings: Settings) -> FunctionType:
    """A function with the same signature that dispatches.

    Generators and coroutines run as plain Python; what they call is served.
    """
    function = getattr(function, ORIGINAL, function)
    code = function.__code__
    if markers.is_disabled(function):
        return function
    if suspends(code):
        made = driven(function, settings)
        setattr(made, ORIGINAL, function)
        return made
    made = FunctionType(
        trampoline_code(code, _target(function, settings)),
        function.__globals__,
        function.__name__,
        (UNSET,) * len(function.__defaults__ or ()) or None,
        function.__closure__,
    )
    if function.__kwdefaults__:
        made.__kwdefaults__ = dict.fromkeys(function.__kwdefaults__, UNSET)
    switch_off(made.__code__)
    functools.update_wrapper(made, function)
    setattr(made, ORIGINAL, function)
    return made


def _target(function: FunctionType, settings: Settings) -> Callable:
    """What the trampoline calls: fills in the defaults of the moment and dispatches.

    Generated, because taking exactly the frame's parameters is fastest.
    """
    code = function.__code__
    count = parameter_count(code)
    names = [f"p{index}" for index in range(count)]
    cells = [f"c{index}" for index in range(len(code.co_freevars))]
    lines = [f"if function.__code__ is not code: return replaced({_call_text(code, names)})"]
    first = code.co_argcount - len(function.__defaults__ or ())
    for index in range(first, code.co_argcount):
        lines.append(f"if p{index} is UNSET: p{index} = function.__defaults__[{index - first}]")
    for index in range(code.co_argcount, code.co_argcount + code.co_kwonlyargcount):
        name = code.co_varnames[index]
        if name in (function.__kwdefaults__ or ()):
            lines.append(f"if p{index} is UNSET: p{index} = function.__kwdefaults__[{name!r}]")
    entry = settings.entry(code, function.__globals__)
    entry.asked_for = True
    values = "".join(f"{name}, " for name in [*names, *cells])
    lines.append(f"try: return dispatch(entry, ({values}))")
    # See `entry.dispatch`.
    lines.append(f"except BaseException: {''.join(f'{name} = ' for name in names)}None; raise")
    text = f"def call({', '.join([*names, *cells])}):\n" + "".join(f"    {x}\n" for x in lines)
    scope: dict[str, Any] = {
        "function": function, "code": code, "UNSET": UNSET, "dispatch": dispatch,
        "entry": entry,
        "replaced": functools.partial(_replaced, function, settings),
    }  # fmt: skip
    exec(compile(text, internal_name(f"call of {code.co_qualname}"), "exec"), scope)
    return hookless(scope["call"])


def _call_text(code: CodeType, names: list[str]) -> str:
    """The arguments that pass bound parameters on as the caller gave them."""
    positional = names[: code.co_argcount]
    parts = [f"positional=[{', '.join(positional)}]"]
    only = range(code.co_argcount, code.co_argcount + code.co_kwonlyargcount)
    keywords = ", ".join(f"{code.co_varnames[i]!r}: {names[i]}" for i in only)
    parts.append(f"keywords={{{keywords}}}")
    rest = names[code.co_argcount + code.co_kwonlyargcount :]
    if code.co_flags & 0x04:
        parts.append(f"varargs={rest.pop(0)}")
    if code.co_flags & 0x08:
        parts.append(f"varkeywords={rest.pop(0)}")
    return ", ".join(parts)


def _replaced(
    function: FunctionType, settings: Settings, positional: list, keywords: dict,
    varargs: tuple = (), varkeywords: dict | None = None,
) -> Any:  # fmt: skip
    """The function's code was swapped: the call goes to a compiled form of what it is now."""
    given = [value for value in positional if value is not UNSET]
    named = {name: value for name, value in keywords.items() if value is not UNSET}
    return compiled_function(function, settings)(*given, *varargs, **named, **(varkeywords or {}))


class ModuleCall:
    """Calls modules: `forward` is the entry; hooks, and calls redefined by a class, run eagerly
    with the frames below them served."""

    def __init__(self, settings: Settings):
        self.settings = settings
        self._forwards: dict[FunctionType, FunctionType] = {}

    @internal
    def __call__(self, module: Module, /, *args: Any, **kwargs: Any) -> Any:
        cls = type(module)
        # Scripted modules have one for each object, and none of the class.
        forward = getattr(cls, "forward", None)
        compiled_forward = self._forwards.get(forward)
        if compiled_forward is None:
            compiled_forward = self._compile(forward)
        if (
            compiled_forward is not None
            and cls.__call__ is Module.__call__
            and "forward" not in module.__dict__
            and calls_are_torchs()
            and no_global_hooks()
            and no_hooks(module)
        ):
            return compiled_forward(module, *args, **kwargs)
        if calls_are_torchs():
            return self.settings.eager(Module._call_impl, module, *args, **kwargs)
        return self.settings.eager(Module.__call__, module, *args, **kwargs)

    def _compile(self, forward: Any) -> FunctionType | None:
        if not isinstance(forward, FunctionType):
            return None
        made = compiled_function(forward, self.settings)
        if made is forward:
            return None
        self._forwards[forward] = made
        return made


module_calls.add(ModuleCall.__call__.__code__)


class CompiledModule(Module):
    """A module whose calls are dispatched. As with torch.compile the original is `_orig_mod`, so
    that keys of its `state_dict` have that prefix; other attributes are the original's."""

    _orig_mod: Module

    def __init__(self, module: Module, settings: Settings):
        super().__init__()
        self._orig_mod = module
        self.__dict__["_serve"] = ModuleCall(settings)
        self.__dict__.pop("training", None)

    @internal
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # As `Module.__call__`, which takes longer to find out that there are no hooks.
        own = self.__dict__
        if no_global_hooks() and no_hooks(self):
            return own["_serve"](own["_modules"]["_orig_mod"], *args, **kwargs)
        return super().__call__(*args, **kwargs)

    @internal
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._serve(self._orig_mod, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__.get("_modules", {})
        if name == "_orig_mod":
            return own["_orig_mod"]
        return getattr(own["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        ready = "_orig_mod" in self.__dict__.get("_modules", {})
        if name == "_orig_mod" or not ready or name in self.__dict__ or name in _OWN:
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __getitem__(self, key: Any) -> Any:
        return self._orig_mod[key]

    def __iter__(self) -> Any:
        return iter(self._orig_mod)

    def __copy__(self) -> "CompiledModule":
        return self._like(copy.copy(self._orig_mod), self._own_state())

    def __deepcopy__(self, memo: dict) -> "CompiledModule":
        return self._like(*copy.deepcopy((self._orig_mod, self._own_state()), memo))

    def __reduce__(self) -> Any:
        return CompiledModule, (self._orig_mod, self._serve.settings), self._own_state()

    def _like(self, module: Module, state: dict[str, Any]) -> "CompiledModule":
        made = CompiledModule(module, self._serve.settings)
        made.__dict__.update(state)
        return made

    def _own_state(self) -> dict[str, Any]:
        """What it holds besides the original: its hooks for one."""
        return {k: v for k, v in self.__dict__.items() if k not in ("_modules", "_serve")}


# What methods of `Module` set that concern the calls of the compiled module itself.
_OWN = frozenset(("_is_full_backward_hook", "_compiled_call_impl"))
