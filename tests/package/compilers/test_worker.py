"""Worker processes: results, crashes, and that workers are kept."""

import pytest

from aotdyn.package.compilers.worker import WorkerDied, Workers

MODULE = """
import os
from aotdyn.package.compilers.worker import serve

def handle(data):
    print("to nobody")
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
