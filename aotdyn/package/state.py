"""The process' state that compiled code depends on: gradient mode, autocast, defaults, and
functions of torch that were replaced."""

import contextlib
import json
import sys
from collections.abc import Iterator

import torch

from .errors import AotdynError
from .own_builtins import BUILTINS as __builtins__  # noqa: F401
from .replaced import replaced

# The devices whose autocast a recorded program can use, in the order in which the state has them.
AUTOCASTS = ("cpu", "cuda")

# Not part of what a trace depends on; they differ between machines.
_MACHINE = ("num_threads",)


def process_state() -> str:
    """The state of this thread as JSON: that of torch's `GlobalStateGuard`, inference mode, the
    kernels of attention, and which functions of torch are not torch's own."""
    state = json.loads(torch._C._dynamo.guards.GlobalStateGuard().__getstate__())
    for name in _MACHINE:
        state.pop(name, None)
    state["inference_mode"] = torch.is_inference_mode_enabled()
    state[_ATTENTION] = attention_kernels()
    foreign = replaced()
    if foreign:
        state["replaced"] = foreign
    return json.dumps(state, sort_keys=True)


def without_attention(text: str) -> str:
    """The state for what no kernel of attention has to do with."""
    state = json.loads(text)
    del state[_ATTENTION]
    return json.dumps(state, sort_keys=True)


def is_state(text: str, now: str) -> bool:
    """Whether the `process_state` of now is that of a text."""
    wanted, found = json.loads(text), json.loads(now)
    if _ATTENTION not in wanted:
        found.pop(_ATTENTION, None)
    return wanted == found


def attention_kernels() -> list:
    """Which kernels `scaled_dot_product_attention` may take, as `sdpa_kernel` sets them, and the
    order in which they are tried."""
    return [read() for read, _ in KERNELS]


# What reads and what writes each flag, and the order.
KERNELS = (
    *(
        (getattr(torch._C, f"_get_{name}_sdp_enabled"), getattr(torch._C, f"_set_sdp_use_{name}"))
        for name in ("cudnn", "flash", "mem_efficient", "math", "overrideable")
    ),
    (torch._C._get_sdp_priority_order, torch._C._set_sdp_priority_order),
)
_ATTENTION = "attention_kernels"


@contextlib.contextmanager
def process_state_is(text: str) -> Iterator[None]:
    """This thread in the state of a `process_state` text but for inference mode; afterwards as it
    was. No text means that the state is left as it is.

    Raises AotdynError for a state that cannot be brought about here.
    """
    before = process_state()
    try:
        if text:
            _apply(json.loads(text))
            if not is_state(_without_inference(text), _without_inference(process_state())):
                raise AotdynError(f"a recorded state of the process is unknown: {_missed(text)}")
        yield
    finally:
        _apply(json.loads(before))


def restore_state(text: str) -> None:
    """Brings this thread into the state of a `process_state` text, but for inference mode."""
    if not is_state(text, process_state()):
        _apply(json.loads(text))


def _without_inference(text: str) -> str:
    """The state without inference mode, under which operators do what they do without gradients."""
    return json.dumps({**json.loads(text), "inference_mode": False}, sort_keys=True)


def _missed(text: str) -> str:
    """The parts of a state that this thread is not in."""
    now = json.loads(process_state())
    parts = json.loads(_without_inference(text)).items()
    return ", ".join(f"{name}={value}" for name, value in parts if now.get(name) != value)


def _apply(state: dict) -> None:
    autocast = state["autocast_state"]
    for kind, enabled, dtype in zip(AUTOCASTS, autocast["enabled"], autocast["dtype"]):
        torch.set_autocast_enabled(kind, enabled)
        torch.set_autocast_dtype(kind, _dtype(dtype))
    torch.set_autocast_cache_enabled(autocast["cached_enabled"])
    torch.set_default_dtype(_dtype(state["default_dtype"]))
    # `torch.use_deterministic_algorithms` tells Inductor, and imports it for that.
    tell = torch.use_deterministic_algorithms
    if "torch._inductor" not in sys.modules:
        tell = torch._C._set_deterministic_algorithms
    tell(state["deterministic_algorithms"], warn_only=state["deterministic_algorithms_warn_only"])
    torch._C._set_grad_enabled(state["grad_mode"])
    _apply_cublas(state)
    if _ATTENTION in state:
        for (_, write), value in zip(KERNELS, state[_ATTENTION], strict=True):
            write(value)


def _apply_cublas(state: dict) -> None:
    """How exact matrix products are on GPUs. Only what differs is told: torch takes offence where
    the old and the new names of these settings are used together."""
    now = json.loads(torch._C._dynamo.guards.GlobalStateGuard().__getstate__())
    if state["allow_tf32"] != now["allow_tf32"]:
        torch._C._set_cublas_allow_tf32(state["allow_tf32"])
    for dtype in ("fp16", "bf16"):
        wanted = state[f"allow_{dtype}_reduce"]
        if wanted != now[f"allow_{dtype}_reduce"]:
            write = getattr(torch._C, f"_set_cublas_allow_{dtype}_reduced_precision_reduction")
            write(*_REDUCTIONS[wanted])


# By the number of C++'s CuBLASReductionOption: whether sums may be of less precision, and whether
# they may be split.
_REDUCTIONS = {0: (True, True), 1: (False, True), 2: (False, False)}


def _dtype(number: int) -> torch.dtype:
    """The dtype with a number of C++'s ScalarType."""
    if number not in DTYPES:
        raise AotdynError(f"a default dtype with the number {number}")
    return DTYPES[number]


# By the number of C++'s ScalarType, those that can be a default.
DTYPES = {5: torch.float16, 6: torch.float32, 7: torch.float64, 15: torch.bfloat16}
