"""Parts of graphs whose launches are captured once for each shape and then replayed together: what
is captured when, and how a replay, which always uses the same memory, looks like a call.

The device does the capturing (`cuda_graphs.py`). What must hold: a result is nobody else's memory
and no later call changes it; inputs that the code changes are changed where the caller has them;
whatever cannot be captured is launched as if there were no captures.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

import torch

from ...package.plan import Plan
from .. import logs
from .results import write_unnoticed

Part = Callable[[Sequence[Any]], list]
Say = Callable[[str], None]

# Captures of one part: each keeps its memory.
MOST = 32
# So many shapes that were seen once are remembered.
_MOST_SEEN = 1024


class Device(Protocol):
    """Captures and replays. Everything but `aside` is called with `lock` held."""

    lock: Any

    def settings(self) -> tuple:
        """What libraries are set to that no guard knows of, and a capture keeps."""

    def free(self) -> bool:
        """Whether this thread's launches may be replaced by a replay."""

    def aside(self, run: Callable[[], list]) -> list:
        """Runs on the stream that captures, for what it needs to be there; as if on the caller's
        stream."""

    def capture(self, run: Callable[[], list]) -> tuple[Callable[[], None], list]:
        """What repeats the launches of `run`, and what it gave. Raises RuntimeError."""

    def turn(self) -> Any:
        """A context for one replay and the copies around it."""


def captured_parts(
    plan: Plan, names: dict[str, Any], device: Device, title: str
) -> dict[str, Part]:
    """The parts of a graph with captures. names: has the parts as they are. title: for people."""
    changed = tuple(sorted({*plan.mutates, *plan.bumped}))
    forward = Captured(names["forward"], plan.static, changed, device, title)
    if not plan.trains:
        return {"forward": forward}
    backward = Captured(names["backward"], (), (), device, f"the gradients of {title}")

    def observe(inputs: Sequence[Any], found: Sequence[Any]) -> None:
        backward.static = _static_in_backward(plan, inputs, found)

    forward.observe = observe
    return {"forward": forward, "backward": backward}


class Captured:
    """One part. static: inputs that stay where they are from call to call, such as weights; if one
    does move, that is another capture. changed: those that the code changes in place. observe: is
    shown inputs and outputs of a call once."""

    def __init__(
        self,
        run: Part,
        static: Collection[int],
        changed: tuple[int, ...],
        device: Device,
        title: str,
        say: Say = logs.warn,
    ):
        self.run = run
        self.static = frozenset(static)
        self.changed = changed
        self.device = device
        self.title = title
        self.say = say
        self.off = ""  # why there are no captures
        self.observe: Callable[[Sequence[Any], Sequence[Any]], None] | None = None
        self._captures: dict[tuple, Capture] = {}
        self._seen: set[tuple] = set()
        self._full = False

    def __call__(self, inputs: Sequence[Any]) -> list:
        if self.off:
            return self.run(inputs)
        device = self.device
        with device.lock:
            if not device.free():
                return self.run(inputs)
            key = self._key(inputs)
            capture = self._captures.get(key) or self._captured(key, inputs)
            if capture is not None:
                with device.turn():
                    return capture(inputs)
        found = device.aside(lambda: self.run(inputs))
        if self.observe is not None:
            self.observe(inputs, found)
            self.observe = None
        return found

    def _key(self, inputs: Sequence[Any]) -> tuple:
        """What a capture is for. Static inputs have constant sizes, which guards have checked."""
        static = self.static
        parts: list[Any] = [self.device.settings()]
        for index, value in enumerate(inputs):
            if not isinstance(value, torch.Tensor):
                # Equal floats may differ in their sign; an int may equal a float.
                parts.append(value.hex() if type(value) is float else (type(value), value))
            elif index in static:
                parts.append(value.data_ptr())
            else:
                parts.append((value.size(), value.stride()))
        return tuple(parts)

    def _captured(self, key: tuple, inputs: Sequence[Any]) -> "Capture | None":
        """A capture for what was seen before, if there can be one."""
        if key not in self._seen:
            if len(self._seen) >= _MOST_SEEN:
                self._seen.clear()
            self._seen.add(key)
            return None
        if len(self._captures) >= MOST:
            if not self._full:
                self._full = True
                self.say(f"{self.title} has {MOST} captures; other shapes and weights get none")
            return None
        try:
            made = Capture(self.run, inputs, self.static, self.changed, self.device)
        except RuntimeError as error:
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            self.off = first[:200]
            self.say(f"{self.title} is launched without a capture: {self.off}")
            return None
        self._captures[key] = made
        return made


class Capture:
    """A part captured for one shape. Raises RuntimeError where that is impossible."""

    def __init__(
        self,
        run: Part,
        inputs: Sequence[Any],
        static: Collection[int],
        changed: tuple[int, ...],
        device: Device,
    ):
        given = list(inputs)
        self._copied: list[int] = []
        self._targets: list[torch.Tensor] = []
        self._flat: set[int] = set()  # by their memory: elements lie over one another
        _check_devices(inputs)
        # Calls in and out of inference mode write to the buffers.
        with torch.inference_mode(False), torch.no_grad():
            for index, value in enumerate(inputs):
                if isinstance(value, torch.Tensor) and index not in static:
                    given[index] = self._buffer(index, value)
        with torch.no_grad():
            self._changed = [(i, given[i]) for i in changed if given[i] is not inputs[i]]
            self._replay, found = device.capture(lambda: run(given))
            self._results = _Results(inputs, given, found)

    def _buffer(self, index: int, value: torch.Tensor) -> torch.Tensor:
        """Memory of our own for an input, with its strides; where it is copied to."""
        size, stride = value.size(), value.stride()
        buffer = torch.empty_strided(size, stride, dtype=value.dtype, device=value.device)
        self._copied.append(index)
        if _overlaps(value):
            self._flat.add(index)
            self._targets.append(_memory_of(buffer))
        else:
            self._targets.append(buffer)
        return buffer

    def __call__(self, inputs: Sequence[Any]) -> list:
        with torch.no_grad():
            given = [
                _memory_of(inputs[index]) if index in self._flat else inputs[index]
                for index in self._copied
            ]
            if given:
                torch._foreach_copy_(self._targets, given)
            self._replay()
            for index, buffer in self._changed:
                write_unnoticed(inputs[index], buffer)
            return self._results(inputs)


def _check_devices(values: Sequence[Any]) -> None:
    """Raises RuntimeError for tensors of several devices: what the CPU does is not captured."""
    found = {value.device.type for value in values if isinstance(value, torch.Tensor)}
    if len(found) > 1:
        raise RuntimeError(f"it has tensors on {' and '.join(sorted(found))}")


class _Results:
    """Makes the outputs of a call from the memory that a replay has written to. Outputs that are
    inputs, or in the memory of one, are those of the call; all others are copied out, so that
    outputs in the same memory still are."""

    def __init__(self, inputs: Sequence[Any], given: Sequence[Any], found: Sequence[Any]):
        """inputs: the call's. given: those that were captured. found: what came out."""
        self._makers: list[Callable[[Sequence[Any], list], Any]] = []
        self._sources: list[torch.Tensor] = []  # what is copied out
        self._sizes: list[tuple] = []
        made = [value for value in found if isinstance(value, torch.Tensor)]
        if any(value.is_conj() or value.is_neg() for value in made):
            raise RuntimeError("it gives tensors that are conjugated when they are read")
        owners = [(i, t) for i, t in enumerate(given) if isinstance(t, torch.Tensor)]
        apart = [value for value in made if _owner(value, owners) is None]
        _check_devices([*given, *made])
        storages = [value.untyped_storage()._cdata for value in apart]
        self._shared: dict[int, int] = {}  # places of copies of whole storages
        for value in found:
            self._makers.append(self._maker(value, owners, storages))

    def __call__(self, inputs: Sequence[Any]) -> list:
        fresh = [torch.empty_strided(*size[0], **size[1]) for size in self._sizes]
        if fresh:
            torch._foreach_copy_(fresh, self._sources)
        return [maker(inputs, fresh) for maker in self._makers]

    def _maker(
        self, value: Any, owners: list[tuple[int, torch.Tensor]], storages: list[int]
    ) -> Callable[[Sequence[Any], list], Any]:
        if not isinstance(value, torch.Tensor):
            return lambda inputs, fresh: value
        owner = _owner(value, owners)
        if owner is not None:
            index, base = owner
            if value is base:
                return lambda inputs, fresh: inputs[index]
            return _view(index, base, value)
        memory = value.untyped_storage()
        if storages.count(memory._cdata) == 1 and not _overlaps(value):
            place = self._copied_out(value)
            return lambda inputs, fresh: fresh[place]
        place = self._shared.get(memory._cdata)
        if place is None:
            whole = torch.empty(0, dtype=torch.uint8, device=value.device).set_(memory)
            place = self._shared[memory._cdata] = self._copied_out(whole)
        shape = (value.storage_offset(), value.size(), value.stride())
        empty = _empty(value)
        return lambda inputs, fresh: empty().set_(fresh[place].untyped_storage(), *shape)

    def _copied_out(self, value: torch.Tensor) -> int:
        self._sources.append(value)
        kind = {"dtype": value.dtype, "device": value.device}
        self._sizes.append(((value.size(), value.stride()), kind))
        return len(self._sources) - 1


def _owner(
    value: torch.Tensor, owners: list[tuple[int, torch.Tensor]]
) -> tuple[int, torch.Tensor] | None:
    """The input in whose memory an output is, the one that it starts in if there are several."""
    memory = value.untyped_storage()._cdata
    there = [each for each in owners if each[1].untyped_storage()._cdata == memory]
    start = value.data_ptr()
    for index, base in there:
        if value is base:
            return index, base
    for index, base in there:
        if base.data_ptr() <= start < base.data_ptr() + _extent(base) * base.element_size():
            return index, base
    return there[0] if there else None


def _view(index: int, base: torch.Tensor, value: torch.Tensor) -> Callable:
    """Makes of the call's input what `value` is of `base`."""
    start = value.storage_offset() * value.element_size()
    start -= base.storage_offset() * base.element_size()
    unit, size, stride = value.element_size(), value.size(), value.stride()
    empty = _empty(value)

    def view(inputs: Sequence[Any], fresh: list) -> torch.Tensor:
        given = inputs[index]
        offset = (given.storage_offset() * given.element_size() + start) // unit
        return empty().set_(given.untyped_storage(), offset, size, stride)

    return view


def _empty(like: torch.Tensor) -> Callable[[], torch.Tensor]:
    dtype, device = like.dtype, like.device
    return lambda: torch.empty(0, dtype=dtype, device=device)


def _overlaps(value: torch.Tensor) -> bool:
    """Whether elements lie at the same address, as those of an expanded tensor."""
    return any(size > 1 and not step for size, step in zip(value.size(), value.stride()))


def _extent(value: torch.Tensor) -> int:
    """From the first element to the last, in elements."""
    if not value.numel():
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(value.size(), value.stride()))


def _memory_of(value: torch.Tensor) -> torch.Tensor:
    """All that lies from the first element to the last, as one row."""
    return value.as_strided((_extent(value),), (1,))


def _static_in_backward(plan: Plan, inputs: Sequence[Any], found: Sequence[Any]) -> frozenset[int]:
    """Which inputs of the backward part are static ones of the forward part, saved whole."""
    first = len(plan.updated) + len(plan.outputs) + plan.bases
    owners = [(i, inputs[i]) for i in plan.static if isinstance(inputs[i], torch.Tensor)]
    static = set()
    for place, value in enumerate(found[first : len(found) - plan.ints]):
        if isinstance(value, torch.Tensor):
            owner = _owner(value, owners)
            # Transposed at most: another view could have a size that differs from call to call.
            if owner is not None and _layout(value) == _layout(owner[1]):
                static.add(plan.ints + place)
    return frozenset(static)


def _layout(value: torch.Tensor) -> tuple:
    """What a tensor has in common with its transposed ones."""
    dims = sorted((size, step) for size, step in zip(value.size(), value.stride()) if size != 1)
    return value.data_ptr(), value.dtype, dims
