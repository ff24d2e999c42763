"""What the program asks of GPUs: facts of the device are constants, asked again at each call."""

from typing import Any

import torch

from ...package.device_facts import fact
from ...package.reference import Import
from ...package.source import Attribute, Bound, Called, Source
from ..polyfills import devices
from ..polyfills.contexts import Region
from ..signals import GraphBreak
from ..variables import Constant, ObjectVariable, Variable
from .table import rule

_FACT = Bound(Import(fact.__module__, fact.__qualname__))
# Functions of `torch.cuda` that take a device, the current one unless given.
_OF_DEVICE = ("get_device_capability", "get_device_name")
_OF_PROCESS = ("current_device", "get_arch_list", "is_current_stream_capturing")


def _told(t, name: str, *args: Any) -> tuple[Any, Source]:
    """A fact, and where guards find it. Where there is none the program is told so as plain
    Python."""
    try:
        return fact(name, *args), Called(_FACT, (name, *args))
    except (LookupError, TypeError, ValueError) as error:
        raise GraphBreak("foreign_call", f"torch.cuda.{name}: {error}"[:200]) from None


def _tell(t, name: str, *args: Any) -> Variable:
    return t.realize(t.lazy(*_told(t, name, *args)))


def _index(t, device: Variable | None) -> int | None:
    """The number of a device that a function is given; None for the current one."""
    given = None if device is None else t.constant(device)
    if type(given) is int:
        return given
    if isinstance(given, str):
        given = torch.device(given)
    if isinstance(given, torch.device) and given.type == "cuda":
        return given.index
    if given is not None:
        raise GraphBreak("bad_arguments", f"{given} is no GPU")
    return None


def _of_device(name: str) -> None:
    @rule(getattr(torch.cuda, name))
    def tell(t, device=None):
        index = _index(t, device)
        return _tell(t, name) if index is None else _tell(t, name, index)


for _name in _OF_DEVICE:
    _of_device(_name)


def _of_process(name: str) -> None:
    @rule(getattr(torch.cuda, name))
    def tell(t):
        return _tell(t, name)


for _name in _OF_PROCESS:
    _of_process(_name)


class DeviceProperties(Variable):
    """What `torch.cuda.get_device_properties` gives, of a class of C: the attributes that are read
    are guarded, and no others."""

    __slots__ = ("value",)

    def __init__(self, value: Any, source: Source):
        super().__init__(source)
        self.value = value


@rule(torch.cuda.get_device_properties)
def get_device_properties(t, device=None):
    index = _index(t, device)
    name = "get_device_properties"
    return DeviceProperties(*(_told(t, name) if index is None else _told(t, name, index)))


@rule(getattr, DeviceProperties)
def properties_getattr(t, self, name):
    key = t.constant(name)
    if key.startswith("_") or not hasattr(self.value, key):
        raise GraphBreak("unknown_type", f"{key} of a device's properties")
    return t.realize(t.lazy(getattr(self.value, key), Attribute(self.source, key)))


# -- names for the profiler, which sees the graph instead ---------------------------


def _marks() -> bool:
    """Whether there is NVTX; without, its functions raise."""
    return not isinstance(torch.cuda.nvtx._nvtx, torch.cuda.nvtx._NVTXStub)


@rule(torch.cuda.nvtx.range)
def nvtx_range(t, msg, *args, **kwargs):
    return t.construct(Region, [msg], {}) if _marks() else NotImplemented


@rule(torch.cuda.nvtx.mark)
def nvtx_mark(t, msg):
    return Constant(None) if _marks() else NotImplemented


# -- the current device ------------------------------------------------------------


def _current(t) -> int:
    return t.constant(_tell(t, "current_device"))


@rule(devices.index_of)
def index_of(t, device):
    index = _index(t, device)
    return Constant(_current(t) if index is None else index)


@rule(devices.exchange)
def exchange(t, index):
    """Nothing happens if it is the current one; a negative one is none."""
    wanted = t.constant(index)
    if wanted < 0:
        return Constant(-1)
    if wanted != _current(t):
        raise GraphBreak("foreign_call", "another device becomes the current one")
    return Constant(wanted)


@rule(torch.cuda.set_device)
def set_device(t, device):
    index = _index(t, device)
    if index is not None and index >= 0 and index != _current(t):
        raise GraphBreak("foreign_call", "torch.cuda.set_device")
    return Constant(None)


def _polyfill(function, polyfill) -> None:
    @rule(function, ObjectVariable)
    def inline(t, self, *args):
        return t.inline_live(polyfill, [self, *args], {})


for _function, _polyfill_of in devices.POLYFILLS.items():
    _polyfill(_function, _polyfill_of)
