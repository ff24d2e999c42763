"""What programs ask of GPUs, with one that only tells of itself: facts are constants of the graph
that hold where the device says the same."""

import contextlib
from unittest import mock

import pytest
import torch

import aotdyn
from aotdyn.package.compilers.gpu.architectures import architecture_of
from aotdyn.package.compilers.gpu.emulated import _replacements
from aotdyn.package.errors import Miss
from aotdyn.package.printer import render
from aotdyn.package.recording import read_recording
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings


@contextlib.contextmanager
def device(target):
    """There is a device of this architecture, to be asked; tensors are not on it."""
    with contextlib.ExitStack() as stack:
        for owner, name, value in _replacements(architecture_of(target)):
            stack.enter_context(mock.patch.object(owner, name, value, create=True))
        yield


@pytest.fixture
def gpu():
    with device("cuda:sm_90"):
        yield


def capability(x):
    if torch.cuda.get_device_capability()[0] >= 9:
        return x * 2
    return x + 1


def capabilities(x):
    cuda = torch.device("cuda", 0)
    one, other = torch.cuda.get_device_capability(cuda), torch.cuda.get_device_capability("cuda")
    return x * sum(one), one == other, torch.cuda.get_device_capability(device=0)


def name(x):
    return x + len(torch.cuda.get_device_name(0)), torch.cuda.get_device_name()


def properties(x):
    found = torch.cuda.get_device_properties(0)
    return x * found.multi_processor_count, found.total_memory, found.name


def kept_properties(x):
    found = torch.cuda.get_device_properties("cuda:0")
    return x * found.major, found


def current(x):
    return x + torch.cuda.current_device() + torch.cuda.device_count()


def bf16(x):
    return x.to(torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16)


def capturing(x):
    return x if torch.cuda.is_current_stream_capturing() else x * 2


def inside(x):
    with torch.cuda.device(0):
        y = x * 2
    with torch.cuda.device("cuda"), torch.cuda.device(None), torch.cuda.device(-1):
        return y + 1


def inside_of(x):
    with torch.cuda.device_of(x):
        return x * 2


def as_decorated(x):
    entered = torch.cuda.device(0)
    with entered as nothing:
        y = x + 1
    return y, nothing, entered.idx


def chosen(x):
    torch.cuda.set_device(0)
    torch.cuda.set_device("cuda:0")
    return x * 2


def left_by_an_error(x):
    try:
        with torch.cuda.device(0):
            raise KeyError("left")
    except KeyError:
        return x * 2


def casts(x):
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=torch.cuda.is_available()):
        return x @ x, torch.is_autocast_enabled("cuda")


def old_casts(x):
    with torch.cuda.amp.autocast(dtype=torch.float16):
        return torch.get_autocast_dtype("cuda"), x * 2


def architectures(x):
    return x * len(torch.cuda.get_arch_list()), torch.cuda.get_arch_list()


def ranges(x):
    torch.cuda.nvtx.mark("start")
    with torch.cuda.nvtx.range("part {}", 1):
        return x * 2


WHOLE = [
    capability, capabilities, name, properties, current, bf16, capturing, inside, inside_of,
    as_decorated, chosen, left_by_an_error, casts, architectures, ranges,
]  # fmt: skip


@pytest.mark.parametrize("program", WHOLE, ids=lambda f: f.__name__)
def test_facts_are_constants(agree, gpu, program):
    agree(program, (torch.randn(3, 3),), graphs=1, breaks=0)


@pytest.mark.filterwarnings("ignore:.*autocast.*is deprecated:FutureWarning")
def test_the_old_spelling_of_autocast(agree, gpu):
    agree(old_casts, (torch.randn(3),), graphs=1, breaks=0)


def test_properties_may_leave_the_frame(agree, gpu):
    agree(kept_properties, (torch.randn(3),), breaks=0)


def synchronized(x):
    y = x * 2
    torch.cuda.synchronize()
    return y + 1


def on_a_stream(x):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        y = x * 2
    torch.cuda.current_stream().wait_stream(stream)
    return y + 1


def timed(x):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    y = x * 2
    end.record()
    torch.cuda.synchronize()
    return y, start.elapsed_time(end) >= 0


def broken_inside(x):
    with torch.cuda.device(0):
        y = x * 2
        print("inside", torch.cuda.current_device())
        z = y + 1
    return z * 2


def named(x):
    torch.cuda.nvtx.range_push("a")
    y = x * 2
    torch.cuda.nvtx.range_pop()
    return y


def recorded(x):
    event = torch.cuda.Stream().record_event()
    y = x * 2
    event.wait()
    return y, event.query(), torch.cuda.current_stream() is None


BREAKING = [synchronized, on_a_stream, timed, broken_inside, named, recorded]


@pytest.mark.parametrize("program", BREAKING, ids=lambda f: f.__name__)
def test_what_the_device_does_happens_where_the_program_does_it(agree, gpu, program):
    found = agree(program, (torch.randn(3),))
    assert found.breaks


def test_nothing_of_the_emulation_is_recorded(tmp_path, gpu):
    """A machine that has a GPU has other streams and events, of the same name."""
    path = tmp_path / "a.rec"
    with aotdyn.record(path):
        for program in (*WHOLE, *BREAKING):
            compiled(program, Settings("eager"))(torch.randn(3, 3))
    text = render(path, guards=True, source="")
    assert "torch.cuda.streams.Stream" in text and "torch.cuda.streams.Event" in text
    assert "emulated" not in text and "aotdyn.package.compilers" not in text
    for variant in read_recording(path).variants:
        assert not variant.obstacles, (variant.entry, variant.obstacles)


def another(x):
    with torch.cuda.device(1):
        return x * 2


def unknown(x):
    return x * torch.cuda.get_device_properties(0).no_such_thing


def no_gpu(x):
    return x, torch.cuda.get_device_capability(torch.device("cpu"))


@pytest.mark.parametrize("program", [unknown, no_gpu], ids=lambda f: f.__name__)
def test_what_raises_does_so_in_python(agree, gpu, program):
    agree(program, (torch.randn(3),))


@pytest.mark.skipif(torch.cuda.is_available(), reason="about processes without a GPU")
@pytest.mark.parametrize(
    "program", [capability, name, properties, current, inside, another, ranges]
)
def test_without_a_device_they_raise_as_in_python(agree, program):
    agree(program, (torch.randn(3),))


@pytest.mark.skipif(torch.cuda.is_available(), reason="about processes without a GPU")
@pytest.mark.parametrize("program", [capability, name, properties, current, inside])
def test_variants_hold_where_the_device_says_the_same(tmp_path, program):
    """Elsewhere calls miss: where the answer is another one, and where there is none."""
    path = tmp_path / "a.rec"
    x = torch.randn(3, 3)
    with device("cuda:sm_90"):
        with aotdyn.record(path):
            compiled(program, Settings("eager"))(x)
        aotdyn.pack(path, tmp_path / "a.pkg")
    asks = program in (capability, name, properties)
    with aotdyn.load(tmp_path / "a.pkg", on_miss="error"):
        with device("cuda:sm_90"):
            compiled(program, Settings("eager"))(x)
        with device("cuda:sm_80"), pytest.raises(Miss) if asks else contextlib.nullcontext():
            compiled(program, Settings("eager"))(x)
        with pytest.raises(Miss):
            compiled(program, Settings("eager"))(x)


def test_only_what_was_read_of_the_properties_is_guarded(tmp_path):
    path, x = tmp_path / "a.rec", torch.randn(3)
    with device("cuda:sm_90"), aotdyn.record(path):
        compiled(warps, Settings("eager"))(x)
    aotdyn.pack(path, tmp_path / "a.pkg")
    with aotdyn.load(tmp_path / "a.pkg", on_miss="error"), device("cuda:sm_80"):
        assert torch.equal(compiled(warps, Settings("eager"))(x), x * 32)


def warps(x):
    return x * torch.cuda.get_device_properties(0).warp_size


@pytest.mark.skipif(torch.cuda.is_available(), reason="about processes without a GPU")
@pytest.mark.parametrize("program", [on_a_stream, timed], ids=lambda f: f.__name__)
def test_streams_and_events_are_torchs_own_when_served(tmp_path, program):
    """Which this build of torch does not make."""
    path, x = tmp_path / "a.rec", torch.randn(3)
    with device("cuda:sm_90"), aotdyn.record(path):
        compiled(program, Settings("eager"))(x)
    aotdyn.pack(path, tmp_path / "a.pkg")
    with aotdyn.load(tmp_path / "a.pkg", on_miss="error") as package:
        with pytest.raises(RuntimeError, match="dummy base class|requires CUDA support"):
            compiled(program, Settings("eager"))(x)
        assert package.stats().hits and not package.stats().misses
