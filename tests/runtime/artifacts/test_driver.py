"""The launcher of GPU kernels against mock drivers: through ctypes for both vendors, and through
`cuda.bindings`, a mock of it and, where it is installed, itself."""

import struct
import subprocess
import sys
import threading

import pytest
import torch

from aotdyn.package.launch import Launch
from aotdyn.runtime.artifacts import bindings
from aotdyn.runtime.artifacts.bindings import BindingsDriver
from aotdyn.runtime.artifacts.driver import DriverError, Kernel, LibraryDriver, driver
from tests.runtime.artifacts import mock_bindings

PTX = b".version 8.8\n.target sm_80\n"
GRID = "def launch(x, out, n, alpha):\n    return (-(n // -256), 1, 1), (x, out, n, alpha)\n"


@pytest.fixture(params=["cuda", "hip", "mock bindings", "cuda.bindings"])
def kind(request, mock_drivers, monkeypatch):
    """Whose driver; the way to it is what this process finds."""
    module = None
    if request.param == "mock bindings":
        module = mock_bindings
    elif request.param == "cuda.bindings":
        module = pytest.importorskip("cuda.bindings.driver")
    monkeypatch.setitem(sys.modules, bindings._NAME, module)
    driver.cache_clear()
    yield "hip" if request.param == "hip" else "cuda"
    driver.cache_clear()


def kernel(kind="cuda", symbol="scale", code=PTX, shared=0):
    names: dict = {}
    exec(GRID, names)
    launch = Launch("scale_0", symbol, ("*fp32", "*fp32", "i32", "fp32"), 2, 128, shared, GRID)
    return Kernel(kind, launch, code, names["launch"])


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


def test_wide_values_are_aligned(mock_drivers, kind):
    names: dict = {}
    exec("def launch(*args):\n    return (1, 1, 1), args\n", names)
    launch = Launch("k", "k", ("i32", "i64", "i1", "fp64", "*i8"), 0, 32, 0, "")
    Kernel(kind, launch, PTX, names["launch"]).run(-1, 1 << 40, True, 2.5, None, stream=0)
    packed = bytes.fromhex(mock_drivers()[-1]["parameters"])
    assert packed == struct.pack("<i4xq?7xdQ", -1, 1 << 40, True, 2.5, 0)


def test_an_empty_grid_is_not_launched(mock_drivers, kind):
    kernel(kind).run(torch.empty(0), torch.empty(0), 0, 1.0, stream=0)
    assert mock_drivers() == []


def test_a_kernel_is_loaded_once_by_many_threads(mock_drivers, kind):
    shared, x = kernel(kind), torch.ones(256)
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


def test_much_shared_memory_is_asked_for(mock_drivers, kind):
    kernel(kind, shared=100_000).run(torch.ones(1), torch.ones(1), 1, 1.0, stream=0)
    assert mock_drivers()[-1]["shared"] == 100_000
    with pytest.raises(DriverError, match="300000 bytes of shared memory for scale"):
        kernel(kind, shared=300_000).run(torch.ones(1), torch.ones(1), 1, 1.0, stream=0)


@pytest.mark.parametrize(
    ("changed", "number", "names", "what"),
    [
        ({"symbol": "missing"}, 500, {"cuda": "CUDA_ERROR_NOT_FOUND", "hip": "hipErrorNotFound"},
         "finding missing"),
        ({"code": b"garbage"}, 200,
         {"cuda": "CUDA_ERROR_INVALID_IMAGE", "hip": "hipErrorInvalidImage"}, "loading scale"),
        ({"symbol": "stuck"}, 1,
         {"cuda": "CUDA_ERROR_INVALID_VALUE", "hip": "hipErrorInvalidValue"},
         r"launching scale_0 with a grid of \(1, 1, 1\)"),
    ],
)  # fmt: skip
def test_errors_have_the_drivers_name(mock_drivers, kind, changed, number, names, what):
    message = f"^{what}: {kind.upper()} error {number}: {names[kind]} \\(as told by"
    with pytest.raises(DriverError, match=message):
        kernel(kind, **changed).run(torch.ones(1), torch.ones(1), 1, 1.0, stream=0)


def test_the_drivers_version(mock_drivers, kind):
    assert driver(kind).version() == {"cuda": 13000, "hip": 70051831}[kind]


def test_which_way_to_the_driver_is_taken(mock_drivers, monkeypatch):
    """Bindings that the process has imported and that have all that is needed; nothing is
    imported."""
    way = driver.__wrapped__
    monkeypatch.setitem(sys.modules, bindings._NAME, mock_bindings)
    assert type(way("cuda")) is BindingsDriver and type(way("hip")) is LibraryDriver
    monkeypatch.delattr(mock_bindings, "cuDriverGetVersion")
    assert type(way("cuda")) is LibraryDriver
    monkeypatch.delitem(sys.modules, bindings._NAME)
    assert type(way("cuda")) is LibraryDriver
    assert bindings._NAME not in sys.modules


def test_an_error_that_the_bindings_do_not_know():
    with pytest.raises(DriverError, match="^x: CUDA error 9999: unknown$"):
        BindingsDriver(mock_bindings).check(9999, "x")


def test_a_number_that_does_not_fit_is_an_error(mock_drivers, kind):
    with pytest.raises(RuntimeError, match="scale_0 cannot be given"):
        kernel(kind).run(torch.ones(1), torch.ones(1), 1 << 31, 1.0, stream=0)
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
