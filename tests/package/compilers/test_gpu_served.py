"""Packages for GPUs, from recording to serving, on a machine without a GPU: the programs of
`gpu_graphs` are recorded on an emulated device, packed, and served there by a driver that lets
Triton's interpreter run what is launched."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import aotdyn
from aotdyn.package.archive import PackageFile
from aotdyn.package.compilers.gpu import build
from aotdyn.package.compilers.gpu.architectures import architecture_of
from aotdyn.package.compilers.gpu.elf import architecture_in, parameter_sizes
from aotdyn.package.compilers.worker import Workers
from aotdyn.package.launch import ASSEMBLY, code_file
from aotdyn.package.plan import plan_from_bytes
from aotdyn.package.thin import thin

from . import cuobjdump

pytestmark = pytest.mark.slow

gpu_graphs = pytest.importorskip("tests.package.compilers.gpu_graphs")

ROOT = Path(__file__).parents[3]
# All programs for these; for the other architectures some of each kind.
WHOLE = ("cuda:sm_90", "hip:gfx942")
SOME = (
    "pointwise", "transposed", "reductions", "arguments", "large", "scans", "softmax", "rms_norm",
    "attention", "flash", "embedding", "conv_norm", "dynamic_batch", "own_tuned", "own_rows",
    "own_scratch", "own_clusters", "own_cooperative", "float8", "layer_norm", "group_norm", "mlp",
    "swiglu", "causal", "cross_entropy", "losses", "dropped", "gathered", "put", "half", "bfloat16",
    "dynamic_length", "own_gradients", "own_in_place",
)  # fmt: skip
ANGLES = re.compile("_(sin|cos|tan|lgamma)_")
OTHERS = ("cuda:sm_80", "cuda:sm_86", "cuda:sm_89", "cuda:sm_100", "cuda:sm_120")


def python(*words, environment=None):
    done = subprocess.run(
        [sys.executable, *map(str, words)], capture_output=True, text=True, cwd=ROOT,
        env={**(environment or os.environ), "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert not done.returncode, done.stderr[-3000:]
    return done.stdout


def recorded(path, target, names=()):
    module = "tests.package.compilers.gpu_graphs"
    python("-m", "aotdyn", "record", "--device", target, "-o", path, "-m", module, *names)
    return path


class NotingWorkers(Workers):
    """What they compile is noted, for the driver that interprets it."""

    def __init__(self, module, environment):
        noted = {"NOTED_KERNELS": os.environ["NOTED_KERNELS"]}
        super().__init__("tests.package.compilers.noting_worker", {**environment, **noted})


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """From a target, or several, and names of programs to a package, its report, and the folder
    with what was noted of its kernels."""
    folder = tmp_path_factory.mktemp("packages")
    made = {}

    def package(target, names=()):
        targets = [target] if isinstance(target, str) else list(target)
        found = made.get((target, names))
        if found is not None:
            return found
        here = folder / f"{len(made)}"
        (here / "noted").mkdir(parents=True)
        recording = recorded(here / "a.rec", next(each for each in targets if each != "cpu"), names)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("NOTED_KERNELS", str(here / "noted"))
            # What takes long once is in the usual cache; what is compiled is compiled here.
            patch.setattr(build.Cache, "get", lambda self, kind, key: None)
            patch.setattr(build, "Workers", NotingWorkers)
            report = aotdyn.pack([recording], here / "a.pkg", targets)
        found = made[target, names] = here / "a.pkg", report, here / "noted"
        return found

    return package


def environment():
    served = "tests.package.compilers.served_on_emulated"
    text = f"import json; from {served} import environment; print(json.dumps(environment()))"
    return json.loads(python("-c", text))


def served(package, target, noted, drivers, names=()):
    words = ("-m", "tests.package.compilers.served_on_emulated", package, target, noted, drivers)
    return json.loads(python(*words, *names, environment=environment()).splitlines()[-1])


@pytest.mark.parametrize("target", WHOLE)
def test_served_is_as_eager(target, packages, mock_driver_folder):
    """Results, changed arguments and gradients, for aligned and misaligned arguments."""
    package, report, noted = packages(target)
    answers = served(package, target, noted, mock_driver_folder)
    assert answers.pop("refused") == []
    assert answers.pop("loaded") == [[target, "bin"]]
    assert set(answers.pop("used")) == {target}
    assert answers.keys() == gpu_graphs.GRAPHS.keys()
    assert {name: found["wrong"] for name, found in answers.items() if found["wrong"]} == {}
    still = {name for name, found in answers.items() if not all(found["launches"].values())}
    expected = gpu_graphs.not_compiled(target)
    assert still == gpu_graphs.WITHOUT_KERNELS | expected.keys()
    assert_told(report, [*expected.values(), "it takes no tensor of a GPU"])


def assert_told(report, reasons):
    """What is not compiled is told, and nothing else."""
    assert len(report.fallbacks) == len(reasons), report.fallbacks
    text = "\n".join(report.fallbacks)
    assert [reason for reason in reasons if reason not in text] == [], text


# -- what is launched --------------------------------------------------------------------------

NEW = "new"  # memory that is no argument's

# name: for each launch the pointers, the numbers, and how many elements of how many blocks' sizes
# the grid covers; from what the programs compute, by hand.
LAUNCHES = {
    "pointwise": [(["a0", "a1", NEW], [3000], [(3000, "XBLOCK")])],
    "broadcast": [(["a0", "a1", NEW], [63], [(63, "XBLOCK")])],
    "transposed": [(["a0", "a1", NEW], [6, 10], [(10, "XBLOCK"), (6, "YBLOCK")])],
    "where": [(["a0", NEW], [40], [(40, "XBLOCK")])],
    "half": [(["a0", NEW], [48], [(48, "XBLOCK")]), ([NEW, "a0", NEW], [48], [(48, "XBLOCK")])],
    "own_add": [
        (["a0", "a1", NEW], [40, 0.5], [(40, "BLOCK")]), ([NEW, NEW], [40], [(40, "XBLOCK")])
    ],
    "own_in_place": [
        (["a0", NEW], [12], [(12, "XBLOCK")]),
        *[([where], [12], [(1, "BLOCK")]) for where in (NEW, NEW, "a0")],
        (["a0", NEW, NEW], [12], [(1, "XBLOCK")]),
    ],
    "update": [(["a0", "a1", NEW, "a0"], [12], [(12, "XBLOCK")])],
}  # fmt: skip


def test_launches_are_those_that_the_shapes_ask_for(packages, mock_driver_folder):
    package, _, noted = packages(WHOLE[0])
    answers = served(package, WHOLE[0], noted, mock_driver_folder, LAUNCHES)
    found = {
        name: [
            (
                [value for value in launch["values"] if isinstance(value, str)],
                [value for value in launch["values"] if not isinstance(value, str)],
                launch["grid"],
            )
            for launch in answers[name]["first"]
        ]
        for name in LAUNCHES
    }
    wanted = {
        name: [
            (pointers, numbers, _grid(covered, launch["constants"]))
            for (pointers, numbers, covered), launch in zip(launches, answers[name]["first"])
        ]
        for name, launches in LAUNCHES.items()
    }
    assert found == wanted


def _grid(covered, constants):
    """How many blocks cover the elements, in each direction."""
    counts = [-(-count // constants[block]) for count, block in covered]
    return [*counts, 1, 1][:3]


# -- several targets in one package ------------------------------------------------------------

MIXED = ("cpu", "cuda:sm_80", "cuda:sm_86", "cuda:sm_90", "hip:gfx942")
ON_DEVICE = 3  # of the graphs
PTX, BIN = "ptx", "bin"


@pytest.fixture(scope="module")
def mixed(packages):
    package, report, noted = packages(MIXED, ("one_after_the_other", "softmax"))
    assert dict(report.compiled) == {"cpu": 1, **dict.fromkeys(MIXED[1:], ON_DEVICE)}
    return package, noted


@pytest.mark.parametrize(
    "device, kept, code",
    [
        ("cuda:sm_90", (), ("cuda:sm_90", BIN)),
        ("cuda:sm_80", (), ("cuda:sm_80", BIN)),
        ("cuda:sm_89", (), ("cuda:sm_86", BIN)),
        ("cuda:sm_120", (), ("cuda:sm_80", PTX)),
        ("hip:gfx942", (), ("hip:gfx942", BIN)),
        ("cuda:sm_86", ("cpu", "cuda:sm_80"), ("cuda:sm_80", BIN)),
        ("cuda:sm_90", ("cuda:sm_86",), ("cuda:sm_86", PTX)),
        ("cuda:sm_80", ("cpu", "cuda:sm_90"), None),
    ],
)
def test_each_graph_takes_the_best_code_for_its_device(
    mixed, device, kept, code, mock_driver_folder, tmp_path
):
    package, noted = mixed
    if kept:
        thin(package, tmp_path / "thin.pkg", kept)
        package = tmp_path / "thin.pkg"
    answers = served(package, device, noted, mock_driver_folder, ("one_after_the_other", "softmax"))
    assert [answers[name]["wrong"] for name in ("one_after_the_other", "softmax")] == [[], []]
    assert answers["loaded"] == ([list(code)] if code else [])
    cpu = ["cpu"] if "cpu" in (kept or MIXED) else []
    assert sorted(answers["used"]) == sorted([*cpu, *([code[0]] * ON_DEVICE if code else [])])
    assert answers["refused"] == []


# -- each architecture -------------------------------------------------------------------------


def kernels(package, target):
    """(graph, launch, code, assembly) of all graphs."""
    with PackageFile.open(package) as file:
        for id in file.graphs:
            artifact = file.artifact(id, target)
            if artifact.notes.get("way") == build.WAY:
                for launch in plan_from_bytes(artifact.files["plan"]).launches:
                    code = bytes(artifact.files[code_file(launch.name)])
                    yield id, launch, code, artifact.files.get(code_file(launch.name, ASSEMBLY))


@pytest.mark.parametrize("target", [*WHOLE, *OTHERS])
def test_each_architecture_packs(target, packages, tmp_path):
    """The binaries are what they should be, as we and as NVIDIA's tool read them."""
    package, report, _ = packages(target, () if target in WHOLE else SOME)
    expected = gpu_graphs.not_compiled(target)
    if target not in WHOLE:
        assert_told(report, [reason for name, reason in expected.items() if name in SOME])
    name = architecture_of(target).name
    found = list(kernels(package, target))
    assert len({graph for graph, *_ in found}) >= 30
    for _, launch, code, assembly in found:
        sizes = parameter_sizes(code, launch.symbol)
        assert architecture_in(code) == name
        assert (assembly is not None) == (target in ("cuda:sm_80", "cuda:sm_86", "cuda:sm_89"))
        if assembly is not None:
            assert f".target {name}" in bytes(assembly).decode()
        if target.startswith("cuda:") and cuobjdump.tool():
            told = cuobjdump.told(code, tmp_path)
            assert told.architecture.rstrip("a") == name
            assert told.name == launch.symbol
            assert tuple(size for _, size in told.parameters) == sizes
            assert told.instructions > 8 and told.registers <= 255
            # No registers are spilled. Reducing large angles takes an array of the thread's own.
            assert told.memory == 0 or ANGLES.search(launch.symbol), launch.symbol


# -- the same again ----------------------------------------------------------------------------

PACKED = """
import hashlib, sys
import aotdyn
from aotdyn.package.compilers.gpu import build
build.Cache.get = lambda self, kind, key: None  # nothing is taken from an earlier run
recording, package, *targets = sys.argv[1:]
aotdyn.pack([recording], package, targets)
"""


@pytest.mark.parametrize(
    "targets, names",
    [
        (WHOLE, ("reductions", "mlp", "dynamic_batch", "own_tuned", "scattered")),
        (OTHERS, ("reductions", "own_tuned")),
    ],
)
def test_the_same_recording_gives_the_same_bytes(targets, names, tmp_path):
    """In two processes, with other hashes of texts and nothing kept of the first."""
    recording = recorded(tmp_path / "a.rec", targets[0], names)
    found = set()
    for seed in "12":
        package = tmp_path / f"{seed}.pkg"
        folders = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
        kept = {folder: str(tmp_path / seed / folder) for folder in folders}
        environment = {**os.environ, **kept, "PYTHONHASHSEED": seed}
        python("-c", PACKED, recording, package, *targets, environment=environment)
        found.add(package.read_bytes())
    assert len(found) == 1
