"""The port to torch's PEP 523 hook: frames that eager code starts are offered to a decider.

The one file that knows `torch._C._dynamo.eval_frame`; it never imports torch._dynamo. A variant's
body makes its eager calls with `call_hooked`; trampolines enter the dispatcher by `unhooked`.
What must hold: a thread's callback, and the region, are after a call what they were before it.
"""

from collections.abc import Callable
from threading import RLock, get_ident
from types import CodeType
from typing import TypeVar

from torch._C._dynamo import eval_frame as _c
from torch._C._dynamo.guards import RootGuardManager

from aotdyn.runtime.cpython import internal, is_function, replaces, suspends

from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401
from .tracebacks import without_ours

# Asked with a code object and its frame's globals; None: never ask about this code again.
Decider = Callable[[CodeType, dict], CodeType | None]

_F = TypeVar("_F", bound=Callable)

_DEFAULT, _SKIP, _RUN_ONLY = (
    _c._FrameAction.DEFAULT,
    _c._FrameAction.SKIP,
    _c._FrameAction.RUN_ONLY,
)

# Marks and entries made in a region of our own do not exist for a torch.compile of the same code.
# The callback is a thread's, but the region is the whole process's: see `_restore_region`.
_REGION, _NO_REGION = 1 << 40, -1

# Told of a code object whose frames cannot be replaced, and of its globals.
Observer = Callable[[CodeType, dict], None]

_decider: Decider | None = None
_observer: Observer | None = None
_deciding: dict[int, bool] = {}  # id of a code being decided on: was it reset meanwhile?
_inside: set[int] = set()  # the threads that are in `call_hooked`
_lock = RLock()  # a finalizer may come here where this thread holds it


def _marked(function: _F, this: _c._FrameAction, below: _c._FrameAction) -> _F:
    """Tells C, for every hook: what to do with frames of the function, and with those below."""
    _c.set_code_exec_strategy(function.__code__, _c._FrameExecStrategy(this, below))
    return function


def hookless(function: _F) -> _F:
    """Decorates a Python function (no generator): frames it starts are seen by no hook.

    C turns the hook, ours or torch.compile's, off and on again around each frame of its code. The
    function may use `call_hooked`, but must leave the callback as it found it.
    """
    function._torchdynamo_disable = True  # torch.compile calls it as it is, and traces nothing
    return _marked(internal(function), _SKIP, _SKIP)


# Called by trampolines.
_marked(without_ours, _SKIP, _SKIP)


def pass_over(code: CodeType) -> None:
    """Frames of this code are not offered; those below them are."""
    _c.set_code_exec_strategy(code, _c._FrameExecStrategy(_SKIP, _DEFAULT))


def switch_off(code: CodeType) -> None:
    """As `hookless`, for a code object."""
    _c.set_code_exec_strategy(code, _c._FrameExecStrategy(_SKIP, _SKIP))


@hookless
def unhooked(f, /, *args, **kwargs):
    """`f(*args, **kwargs)` with the hook off in this thread, whosever it is.

    A dispatcher that is `hookless` itself saves this frame.
    """
    return f(*args, **kwargs)


@hookless
def call_hooked(f, /, *args, **kwargs):
    """`f(*args, **kwargs)`; function frames that start in this thread meanwhile are offered.

    May be nested, also with `unhooked` and torch.compile. While another thread runs a function of
    torch.compile, frames may pass by unoffered and unserved: torch has one region for all threads.
    Adds 0.7 us where a plain call takes 45 ns.
    """
    thread = get_ident()
    nested = thread in _inside
    _inside.add(thread)
    prior = _c.get_eval_frame_callback()
    region = _c.set_eval_frame_isolate_recompiles_id(_REGION)
    try:  # nothing can interrupt between here and the next line
        _c.set_eval_frame(_callback)
        return f(*args, **kwargs)
    finally:
        del args, kwargs  # an exception among them may have a traceback that leads here
        if _c.set_eval_frame(prior) is None:
            _recount()
        if not nested:
            _inside.discard(thread)
        _restore_region(region, nested)


@hookless
def set_decider(decide: Decider | None) -> Decider | None:
    """Makes `decide` the one that is asked from now on; returns the one before.

    `decide(code, globals)` is called with the hook off when a frame of that code starts, once per
    code object. It returns None, and frames of that code run untouched from then on, or code that
    replaces it (see `trampoline_code`; TypeError if it does not fit): this frame and all later
    ones run that, in every thread, without coming back here. Generators, coroutines, class and
    module bodies are not asked about. The code is asked about again after `reset`, and after
    `torch._dynamo.reset()` if torch.compile met it too.

    What `decide` raises is raised in place of the frame; the hook is then off until the innermost
    `call_hooked` returns, and the code will be asked about again. So it will, with nothing raised,
    after a RecursionError: then there was no room to decide, and the frame runs untouched.

    Added to a call, where a plain one takes 45 ns: 50 ns for code that runs untouched, 1.1 us for
    code replaced (of which 0.05 are the trampoline), and 0.1 more where its target is `hookless`
    or 0.3 where it is a `functools.partial` of `unhooked`. To be asked costs 40 us.
    """
    global _decider
    before, _decider = _decider, decide
    return before


@hookless
def set_observer(observe: Observer) -> None:
    """Makes `observe` the one that is told, once per code object, of generators and coroutines of
    which a frame starts. It is called with the hook off and must not raise."""
    global _observer
    _observer = observe


@hookless
def reset(code: CodeType) -> None:
    """Forgets what was decided on this code: the next frame of it in the hook is asked about.

    Whatever torch.compile knows about the code is forgotten with it. From within a decision on
    the same code it voids that decision.
    """
    with _lock:
        if id(code) in _deciding:
            _deciding[id(code)] = True  # C is using the code's state: it cannot be freed now
        else:
            _c.reset_code(code)


def active() -> bool:
    """Whether function frames that start in this thread now are offered."""
    return _c.get_eval_frame_callback() is _callback


_marked(active, _SKIP, _DEFAULT)


def _restore_region(region: int, nested: bool) -> None:
    """Sets what was the region before, unless other threads are in `call_hooked` and need ours.

    That is looked at again after setting: a thread that enters in between has counted itself
    before it sets the region, so one of the two sees the other. A lock costs twice as much.
    """
    if region == _REGION and not nested:
        region = _NO_REGION  # other threads were there first, and have left it to this one
    while len(_inside) <= nested:
        _c.set_eval_frame_isolate_recompiles_id(region)
        if len(_inside) <= nested:
            return
        _c.set_eval_frame_isolate_recompiles_id(_REGION)


class _Guard:
    """Guards that always hold, as C wants them: it reads two roots and writes two back references.

    Without a single guard C takes its fastest path, and dispatch is all left to the replacement.
    """

    __slots__ = ("cache_entry", "diff_guard_root", "extra_state", "root")

    def __init__(self):
        self.root = self.diff_guard_root = RootGuardManager()


class _GuardedCode:
    """A cache entry for C, which keeps it alive as long as the code it was made for."""

    __slots__ = ("code", "compile_id", "guard_manager", "trace_annotation")

    def __init__(self, code: CodeType):
        self.code, self.guard_manager, self.compile_id = code, _Guard(), None
        self.trace_annotation = f"aotdyn: {code.co_qualname}"  # the profiler's name for a call


class _Answer:
    """What C reads from the callback's result: what to do now, and whether to do so from now on.

    Frames below are to be treated as ever: otherwise C would set the callback again after this
    frame, over whatever a context manager in it has set.
    """

    __slots__ = ("apply_to_code", "frame_exec_strategy", "guarded_code")

    def __init__(self, this, always=False, code: _GuardedCode | None = None, below=_DEFAULT):
        self.frame_exec_strategy = _c._FrameExecStrategy(this, below)
        self.apply_to_code, self.guarded_code = always, code


_NEVER, _NOT_NOW = _Answer(_SKIP, always=True), _Answer(_SKIP)
_CALLBACK_BACK_AFTER = _Answer(_SKIP, below=_RUN_ONLY)


def _callback(frame, cache_entry, frame_state) -> _Answer:
    """Called by C, with the hook off, when a frame of a code without mark or entry starts.

    It is the one callback ever set: C's entries belong to the callback that made them. When it
    raises, C raises that in the frame's caller and leaves the hook off: see `_recount`.
    """
    # C keeps this dict, and with it what the frame may let go of, until the frame has run.
    frame.f_locals.clear()
    code, decide = frame.f_code, _decider
    if code is _drop_callback.__code__:
        return _CALLBACK_BACK_AFTER
    if not _in_region():
        return _NOT_NOW
    if suspends(code):
        if _observer is not None:
            _observer(code, frame.f_globals)
        return _NEVER
    if not is_function(code):
        return _NEVER
    if decide is None or frame.f_lasti != -1 or not _claim(code):
        return _NOT_NOW
    try:
        replacement = decide(code, frame.f_globals)
    except RecursionError:
        return _NOT_NOW
    finally:
        void = _release(code)
    if void or not _in_region():
        return _NOT_NOW
    if replacement is None:
        return _NEVER
    if not replaces(code, replacement):  # C copies the frame's slots by index, unchecked
        raise TypeError(f"{replacement!r} does not fit frames of {code!r}")
    return _Answer(_DEFAULT, code=_GuardedCode(replacement))


def _in_region() -> bool:
    """Whether what C remembers now is remembered for us only: no thread has changed the region."""
    return _c.get_eval_frame_isolate_recompiles_id() == _REGION


def _claim(code: CodeType) -> bool:
    """Whether the caller is to decide: no other thread, and no caller of this one, is at it."""
    with _lock:
        if id(code) in _deciding:
            return False
        _deciding[id(code)] = False
        return True


def _release(code: CodeType) -> bool:
    with _lock:
        return _deciding.pop(id(code))


def _recount() -> None:
    """Takes this thread off C's count of hooked threads once more.

    C counts threads in `set_eval_frame` and runs all frames through its hook while there are any.
    When the callback raises it drops the callback without counting, so the caller's restoring
    leaves one too many. The count falls without the callback falling in a frame after which C
    sets the callback again by itself.
    """
    prior = _c.set_eval_frame(_callback)
    try:
        _drop_callback()
    except RecursionError:
        pass  # no room: frames go on passing through C's hook, 25 ns each
    finally:
        _c.set_eval_frame(prior)


def _drop_callback() -> None:
    _c.set_eval_frame(None)
