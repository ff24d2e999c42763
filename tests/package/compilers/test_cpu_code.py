"""What becomes of generated C++, and what happens without a compiler or with unknown options."""

from dataclasses import replace

import pytest

from aotdyn.package.compilers import Job, Unavailable, check_targets
from aotdyn.package.compilers.cache import Cache
from aotdyn.package.compilers.cpu.code import part_code, table
from aotdyn.package.compilers.cpu.jobs import job_from_bytes, job_key, job_to_bytes
from aotdyn.package.compilers.isa import ISAS, runnable_here
from aotdyn.package.compilers.options import Options
from aotdyn.package.compilers.refusal import Refused
from aotdyn.package.compilers.toolchain import Source, Toolchain, needs
from aotdyn.package.errors import AotdynError
from aotdyn.package.graph import Graph
from aotdyn.package.plan import Output, Plan, plan_from_bytes, plan_to_bytes

WRAPPER = """interface
} // extern "C"
extern "C" void cpp_fused_add_0(const float* a, float* b);
namespace torch::aot_inductor {
namespace {
class AOTInductorModelKernels : public AOTInductorModelKernelsBase {};
}  // namespace
AOTInductorModel::AOTInductorModel(
    : AOTInductorModelBase(2,
                           1,
                           0,
                           device_str) {}
using namespace torch::aot_inductor;
namespace torch::aot_inductor {

void AOTInductorModel::_const_run_impl(
    int stream
) {}

AOTI_NOINLINE static void check_input_0(
    AtenTensorHandle* input_handles
) {
    if (x) {
    }
}

static bool _check_aoti_runtime_check_inputs_env() {
    return false;
}

void AOTInductorModel::run_impl(
    int stream
) {
    __check_inputs_outputs(input_handles, output_handles);
    if (_check_aoti_runtime_check_inputs_env()) { assert_size_stride(a, "input"); }
    cpp_fused_add_0(a, b);
} // AOTInductorModel::run_impl
} // namespace torch::aot_inductor
"""
KERNEL = 'extern "C" void cpp_fused_add_0(const float* a, float* b) {}'


def test_generated_code_becomes_a_class_of_ours():
    part = part_code(WRAPPER, {"avx2": KERNEL, "scalar": KERNEL}, "")
    assert f"struct {part.name} final : AotdynGraph" in part.wrapper
    assert "AotdynGraph(2, 1)" in part.wrapper
    assert f"{part.name}_cpp_fused_add_0(a, b);" in part.wrapper
    assert f"void {part.name}_cpp_fused_add_0(" in part.kernels["scalar"]
    assert "check_input" not in part.wrapper and "assert_size" not in part.wrapper
    assert f"case 1: return make_{part.name}();" in table(["other", part.name])


def test_names_follow_from_all_of_the_code():
    other = KERNEL.replace("{}", "{ b[0] = 1; }")
    names = {part_code(WRAPPER, {"avx2": k}, "").name for k in (KERNEL, other, KERNEL)}
    assert len(names) == 2


@pytest.mark.parametrize(
    "old, new",
    [
        ("_const_run_impl(", "_other("),
        ('} // extern "C"', "}"),
        ("                           0,", "                           3,"),
        ("cpp_fused_add_0(a, b);", "constants_->at(0);"),
        ("cpp_fused_add_0(a, b);", "AOTInductorModelOther();"),
    ],
)
def test_code_that_looks_different_is_refused(old, new):
    with pytest.raises(Refused):
        part_code(WRAPPER.replace(old, new), {"avx2": KERNEL}, "")


def test_operators_are_numbered_per_graph():
    call = "aoti_torch_proxy_executor_call_function(proxy_executor, 1, 2, a);"
    text = WRAPPER.replace("cpp_fused_add_0(a, b);", call)
    nodes = '{"nodes": [{"name": "a"}, {"name": "b"}]}'
    first, later = (part_code(text, {"avx2": KERNEL}, nodes, index) for index in (0, 5))
    assert len(later.external) == 2 and first.name != later.name
    assert "(proxy_executor, 1, 2, a)" in first.wrapper
    assert "(proxy_executor, 6, 2, a)" in later.wrapper


def test_no_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(Unavailable, match="no-such-compiler") as caught:
        Toolchain.find(Cache(tmp_path))
    assert "\n" not in str(caught.value)


def test_a_text_that_does_not_compile_is_refused(tmp_path):
    try:
        tools = Toolchain.find(Cache(tmp_path))
    except Unavailable:
        pytest.skip("no compiler")
    monkey = Source("#error it is wrong\n", ISAS["scalar"])
    tools.version = "without headers"
    with pytest.raises(Refused, match="it is wrong"):
        tools.compile(monkey)


def test_options():
    options = Options.of({"isas": ["avx2"], "max_autotune": True, "fallback_random": False})
    inductor = {"max_autotune": True, "fallback_random": False}
    assert options == Options(("avx2",), inductor=inductor)
    with pytest.raises(AotdynError, match="avx512, avx2, scalar"):
        Options.of({"isas": ["mmx"]})
    with pytest.raises(AotdynError, match="container, python"):
        Options.of({"ways": ["by hand"]})
    check_targets(["eager", "cpu"])


def test_jobs_are_data(samples):
    job, options = Job(samples.GRAPH), Options(ways=("python",))
    assert job_from_bytes(job_to_bytes(job, options, "python")) == (job, options, "python")
    keys = {
        job_key(job, Options(), "container"),
        job_key(job, Options(), "python"),
        job_key(Job(replace(samples.GRAPH, state="other")), Options(), "container"),
        job_key(job, Options(threads=1), "container"),
        job_key(Job(Graph((), (), ())), Options(), "container"),
    }
    assert len(keys) == 5


def test_plans_are_data():
    plan = Plan("name", 0, 1, outputs=(Output("new", requires_grad=True),), tangents=(None,))
    assert plan_from_bytes(plan_to_bytes(plan)) == plan and plan.trains


def test_what_a_library_needs():
    assert needs(b"..GLIBC_2.14\0GLIBC_2.4\0GLIBC_2.2.5\0GLIBCXX_3.4.21\0") == {
        "glibc": "2.14",
        "glibcxx": "3.4.21",
    }


def test_what_this_machine_runs(monkeypatch):
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: "AVX2")
    assert runnable_here() == ["scalar", "avx2"]
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: "NEON")
    assert runnable_here() == []
