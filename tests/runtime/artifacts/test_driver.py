"""The launcher of GPU kernels against a mock driver."""

import struct
import subprocess
import sys
import threading

import pytest
import torch

from aotdyn.package.launch import Launch
from aotdyn.runtime.artifacts.driver import DriverError, Kernel

PTX = b".version 8.8\n.target sm_80\n"
GRID = "def launch(x, out, n, alpha):\n    return (-(n // -256), 1, 1), (x, out, n, alpha)\n"


def kernel(kind="cuda", symbol="scale", code=PTX, shared=0):
    names: dict = {}
    exec(GRID, names)
    launch = Launch("scale_0", symbol, ("*fp32", "*fp32", "i32", "fp32"), 2, 128, shared, GRID)
    return Kernel(kind, launch, code, names["launch"])


@pytest.mark.parametrize("kind", ["cuda", "hip"])
def test_parameters_lie_as_the_kernel_expects_them(mock_drivers, kind):
    x, out = torch.ones(600), torch.empty(600)
    kernel(kind).run(x, out, 600, 0.5, stream=7)
    load, launch = mock_drivers()
    assert load == {"op": "load"}
    assert launch["symbol"] == "scale"
    assert launch["grid"] == [3, 1, 1]
    assert (launch["threads"], launch["shared"], launch["stream"]) == (128, 0, 7)
    packed = bytes.fromhex(launch["parameters"])
    assert packed == struct.pack("<QQifQQ", x.data_ptr(), out.data_ptr(), 600, 0.5, 0, 0)


def test_wide_values_are_aligned(mock_drivers):
    names: dict = {}
    exec("def launch(*args):\n    return (1, 1, 1), args\n", names)
    launch = Launch("k", "k", ("i32", "i64", "i1", "fp64", "*i8"), 0, 32, 0, "")
    Kernel("cuda", launch, PTX, names["launch"]).run(-1, 1 << 40, True, 2.5, None, stream=0)
    packed = bytes.fromhex(mock_drivers()[-1]["parameters"])
    assert packed == struct.pack("<i4xq?7xdQ", -1, 1 << 40, True, 2.5, 0)


def test_an_empty_grid_is_not_launched(mock_drivers):
    kernel().run(torch.empty(0), torch.empty(0), 0, 1.0, stream=0)
    assert mock_drivers() == []


def test_a_kernel_is_loaded_once_by_many_threads(mock_drivers):
    shared, x = kernel(), torch.ones(256)
    start = threading.Barrier(8)

    def work():
        start.wait()
        for _ in range(20):
            shared.run(x, x, 256, 1.0, stream=0)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    operations = [line["op"] for line in mock_drivers()]
    assert operations.count("load") == 1
    assert operations.count("launch") == 160


def test_much_shared_memory_is_asked_for(mock_drivers):
    kernel(shared=100_000).run(torch.ones(1), torch.ones(1), 1, 1.0, stream=0)
    assert mock_drivers()[-1]["shared"] == 100_000
    with pytest.raises(DriverError, match="300000 bytes of shared memory for scale"):
        kernel(shared=300_000).run(torch.ones(1), torch.ones(1), 1, 1.0, stream=0)


@pytest.mark.parametrize(
    ("kind", "changed", "message"),
    [
        ("cuda", {"symbol": "missing"}, "finding missing: CUDA error 500: CUDA_ERROR_NOT_FOUND"),
        ("cuda", {"code": b"garbage"}, "loading scale: CUDA error 200: CUDA_ERROR_INVALID_IMAGE"),
        ("hip", {"code": b"garbage"}, "loading scale: HIP error 200"),
    ],
)
def test_errors_have_the_drivers_name(mock_drivers, kind, changed, message):
    with pytest.raises(DriverError, match=message):
        kernel(kind, **changed).run(torch.ones(1), torch.ones(1), 1, 1.0, stream=0)


def test_a_number_that_does_not_fit_is_an_error(mock_drivers):
    with pytest.raises(RuntimeError, match="scale_0 cannot be given"):
        kernel().run(torch.ones(1), torch.ones(1), 1 << 31, 1.0, stream=0)
    assert all(line["op"] != "launch" for line in mock_drivers())


def test_no_driver_is_one_clear_error():
    code = (
        "from aotdyn.runtime.artifacts.driver import driver\n"
        "from aotdyn.package.errors import PackageError\n"
        "try:\n    driver('hip')\n"
        "except PackageError as error:\n    print(error)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.startswith("there is no hip driver here: libamdhip64.so")
