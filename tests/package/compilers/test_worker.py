"""Worker processes: results, crashes, and that workers are kept."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from aotdyn.package.compilers.worker import WorkerDied, Workers, WorkersClosed

MODULE = """
import os, time
from aotdyn.package.compilers.worker import serve

def handle(data):
    print("to nobody")
    if data == b"sleep":
        time.sleep(600)
    if data == b"die":
        os.abort()
    if data == b"end":
        raise ValueError("no such job")
    return str(os.getpid()).encode() + data

if __name__ == "__main__":
    serve(handle)
"""


@pytest.fixture
def workers(tmp_path, monkeypatch):
    (tmp_path / "aotdyn_test_worker.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    with Workers("aotdyn_test_worker") as made:
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
