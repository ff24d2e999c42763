"""Worker processes, fresh ones and forked ones: results, crashes, and that workers are kept."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from aotdyn.package.compilers.forks import ForkServer
from aotdyn.package.compilers.isa import runnable_here
from aotdyn.package.compilers.worker import WorkerDied, Workers, WorkersClosed

MODULE = """
import os, sys, time
from aotdyn.package.compilers.worker import serve

prepared = 0

def handle(data):
    print("to nobody")
    if data == b"sleep":
        time.sleep(600)
    if data == b"die":
        os.abort()
    if data == b"end":
        raise ValueError("no such job")
    if data == b"compilers":
        names = ("torch._dynamo", "torch._inductor", "sympy", "triton", "aotdyn.record")
        return " ".join(name for name in names if name in sys.modules).encode()
    if data == b"facts":
        import torch
        level, named = torch.backends.cpu.get_cpu_capability(), os.environ.get("AOTDYN_NAMED")
        return f"{level} {named} {prepared} {torch.ones(3, requires_grad=True).sum()}".encode()
    return str(os.getpid()).encode() + data

def prepare():
    global prepared
    prepared += 1

def main():
    serve(handle)

if __name__ == "__main__":
    main()
"""
NAME = "aotdyn_test_worker"


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / f"{NAME}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.fixture(scope="module")
def server():
    made = ForkServer()
    yield made
    made.close()


@pytest.fixture(params=["fresh", "forked"])
def workers(request, module, server):
    with Workers(NAME, server=server if request.param == "forked" else None) as made:
        yield made


def test_a_worker_is_kept_until_it_dies(workers):
    first = workers.run(b"-a")
    assert workers.run(b"-b").partition(b"-")[0] == first.partition(b"-")[0]
    with pytest.raises(WorkerDied, match="died of SIGABRT"):
        workers.run(b"die")
    with pytest.raises(WorkerDied, match="ended: ValueError: no such job"):
        workers.run(b"end")
    assert workers.run(b"-a") != first


def test_closing_interrupts_a_job_and_starts_no_other(workers):
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(workers.run, b"sleep")
        while not workers._all:
            time.sleep(0.01)
        workers.close()
        with pytest.raises(WorkersClosed):
            job.result()
    with pytest.raises(WorkersClosed):
        workers.run(b"-a")


def test_several_workers_at_once(workers):
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(workers.run, [b"-%d" % i for i in range(20)]))
    assert [answer.partition(b"-")[2] for answer in found] == [b"%d" % i for i in range(20)]


def test_what_a_forked_worker_has(module, server):
    """Each has its own ISA; nothing but torch was imported before."""
    for level in [{"scalar": "default"}.get(isa, isa) for isa in runnable_here()]:
        environment = {"ATEN_CPU_CAPABILITY": level, "AOTDYN_NAMED": level}
        with Workers(NAME, environment, server) as workers:
            assert workers.run(b"compilers") == b""
            assert workers.run(b"facts") == f"{level.upper()} {level} 0 3.0".encode()


def test_a_server_forked_from_a_server(module, server):
    inner = ForkServer(NAME, server)
    with Workers(NAME, server=inner) as workers:
        assert workers.run(b"facts").split()[2] == b"1"
        with pytest.raises(WorkerDied, match="died of SIGABRT"):
            workers.run(b"die")
        pid = int(workers.run(b""))
    inner.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_server_that_cannot_start(server):
    broken = ForkServer("aotdyn_no_such_module", server)
    with Workers(NAME, server=broken) as workers, pytest.raises(WorkerDied, match="no_such_module"):
        workers.run(b"")
    broken.close()
