"""Kernels in several configurations: one is chosen, once, and nobody notices."""

import json
import threading

import pytest
import torch

from aotdyn.package.archive import Artifact
from aotdyn.package.launch import Launch, code_file
from aotdyn.package.plan import Plan
from aotdyn.runtime.artifacts import gpu_parts
from aotdyn.runtime.artifacts.driver import DriverError
from aotdyn.runtime.artifacts.tuning import Tuned


class Candidate:
    """A kernel that adds to its first argument what it reads from its second. takes: how long."""

    def __init__(self, takes, code=b"code"):
        self.takes = takes
        self.code = code
        self.runs = 0

    def run(self, x, y, n, stream):
        assert stream == 7
        if self.takes is None:
            raise DriverError("too much shared memory")
        self.runs += 1
        x.add_(y)


class Clock:
    """takes: of the launches that are timed, what their kernels say."""

    def __init__(self, device="a device"):
        self.name = device
        self.timed = []
        self.on = True

    def runs(self):
        return self.on

    def milliseconds(self, launch):
        for _ in range(3):
            launch()
        kernel = launch.__defaults__[0]
        self.timed.append(kernel)
        return kernel.takes

    def device(self):
        return self.name


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("AOTDYN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def candidates(*times):
    return [Candidate(time, str(index).encode()) for index, time in enumerate(times)]


def call(kernel):
    """What one call changes."""
    memory = torch.arange(12.0)
    x, y = memory[4:8], torch.ones(4)
    kernel.run(x, y, 4, stream=7)
    assert torch.equal(memory[4:8], torch.arange(4.0, 8) + 1), "it ran more than once"
    assert torch.equal(memory[:4], torch.arange(4.0)) and torch.equal(y, torch.ones(4))


def test_the_fastest_is_taken_and_nothing_but_its_call_is_seen():
    found, clock = candidates(3.0, 1.0, 2.0), Clock()
    kernel = Tuned(found, (0, 2), clock)
    for _ in range(4):
        call(kernel)
    assert clock.timed == found  # once each
    assert [each.runs for each in found] == [3, 3 + 4, 3]


def test_the_choice_is_kept_for_other_processes(folder):
    call(Tuned(candidates(3.0, 1.0), (0,), Clock()))
    (place,) = [path for path in folder.rglob("*") if path.is_file()]
    assert json.loads(place.read_text()) == {"choice": 1, "milliseconds": [3.0, 1.0]}
    again, clock = candidates(3.0, 1.0), Clock()
    call(Tuned(again, (0,), clock))
    assert clock.timed == [] and [each.runs for each in again] == [0, 1]
    # It holds for this device, and these kernels.
    for others, other_clock in (
        (candidates(1.0, 3.0), Clock("another device")),
        ([Candidate(1.0, b"0"), Candidate(3.0, b"other")], Clock()),
    ):
        call(Tuned(others, (0,), other_clock))
        assert len(other_clock.timed) == 2 and others[0].runs == 4


@pytest.mark.parametrize("contents", [b"", b"{}", b"[]", b'{"choice": 2}', b'{"choice": true}'])
def test_a_damaged_choice_is_none(folder, contents):
    call(Tuned(candidates(3.0, 1.0), (0,), Clock()))
    (place,) = [path for path in folder.rglob("*") if path.is_file()]
    place.write_bytes(contents)
    clock = Clock()
    call(Tuned(candidates(3.0, 1.0), (0,), clock))
    assert len(clock.timed) == 2
    assert json.loads(place.read_text())["choice"] == 1


def test_a_folder_that_cannot_be_written_to(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("AOTDYN_CACHE", str(tmp_path / "file"))
    found, clock = candidates(3.0, 1.0), Clock()
    kernel = Tuned(found, (0,), clock)
    call(kernel), call(kernel)
    assert len(clock.timed) == 2 and found[1].runs == 5


def test_what_does_not_run_here_is_not_taken():
    found = candidates(None, 2.0, None)
    call(Tuned(found, (0,), Clock()))
    assert found[1].runs == 4


def test_if_none_runs_the_first_one_says_why(folder):
    with pytest.raises(DriverError, match="too much shared memory"):
        call(Tuned(candidates(None, None), (0,), Clock()))
    assert not folder.exists()


def test_without_memory_for_copies_the_first_is_taken(monkeypatch, folder):
    def full(*args):
        raise torch.OutOfMemoryError("full")

    monkeypatch.setattr("aotdyn.runtime.artifacts.tuning._copied", full)
    found, clock = candidates(3.0, 1.0), Clock()
    call(Tuned(found, (0,), clock))
    assert clock.timed == [] and found[0].runs == 1 and not folder.exists()


def test_nothing_is_timed_while_launches_are_captured():
    found, clock = candidates(3.0, 1.0), Clock()
    kernel, clock.on = Tuned(found, (0,), clock), False
    call(kernel)
    assert [each.runs for each in found] == [1, 0]
    clock.on = True
    call(kernel)
    assert [each.runs for each in found] == [1 + 3, 3 + 1]


def test_many_threads_choose_once():
    found, clock = candidates(3.0, 1.0), Clock()
    kernel, start = Tuned(found, (0,), clock), threading.Barrier(8)

    def work():
        start.wait()
        for _ in range(10):
            kernel.run(torch.zeros(2), torch.ones(2), 2, stream=7)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(clock.timed) == 2 and found[1].runs == 3 + 80


def test_configurations_of_a_package(mock_drivers):
    text = "def launch(x, n):\n    return (n, 1, 1), (x,)\n"

    def launch(name, threads, **more):
        return Launch(name, name, ("*fp32",), 0, threads, 0, text, **more)

    launches = (
        launch("a", 128, written=(0,)), launch("a_1", 64, instead="a"), launch("b", 32),
    )  # fmt: skip
    files = {code_file(each.name): b".version 8.8" for each in launches}
    artifact = Artifact("cuda:sm_90", "", {}, files)
    found = gpu_parts.kernels(artifact, Plan("", 0, launches=launches))
    assert found.keys() == {"a", "b"}
    assert type(found["a"]) is Tuned and found["a"].written == {0}
    found["a"].clock = clock = Clock("mocked")
    clock.milliseconds = lambda launch: launch() or 5.0 - len(clock.timed.append(1) or clock.timed)
    x = torch.ones(4)
    found["a"].run(x, 3, stream=7)
    asked = [line for line in mock_drivers() if line["op"] == "launch"]
    assert [line["symbol"] for line in asked] == ["a", "a_1", "a_1"]
    addresses = [int.from_bytes(bytes.fromhex(line["parameters"]), "little") for line in asked]
    assert addresses[-1] == x.data_ptr() and x.data_ptr() not in addresses[:-1]
