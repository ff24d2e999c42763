"""What becomes of Inductor's Python wrappers: a function of ours, and kernels that Python calls."""

import ast

import pytest

from aotdyn.package.compilers.cpu.python_code import python_code
from aotdyn.package.compilers.lowering.wrapper_text import EXTERN_KERNELS, NAMES
from aotdyn.package.compilers.refusal import Refused
from aotdyn.package.plan import Kernel
from aotdyn.runtime.artifacts import python_parts

WRAPPER = """
from torch._inductor.async_compile import AsyncCompile
aten = torch.ops.aten
async_compile = AsyncCompile()
constant0 = None

cpp_fused_add_0 = async_compile.cpp_pybinding(['const float*', 'float*', 'const int64_t'], r'''
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0,
                       const int64_t ks0)
{
    TORCH_CHECK(ks0 > 0, "no");
    AOTI_TORCH_CHECK(ks0 > 0, "no");
}
''')

async_compile.wait(globals())

def call(args):
    arg0_1, arg1_1 = args
    args.clear()
    s0 = arg0_1
    buf0 = empty_strided_cpu((s0, ), (1, ), torch.float32)
    # what it is
    cpp_fused_add_0(arg1_1, buf0, s0)
    extern_kernels.mm(buf0, constant0, out=buf0)
    return (buf0, s0, None, )

def benchmark_compiled_module(times=10):
    from torch._dynamo.testing import rand_strided
"""


def code(text=WRAPPER, count=3, **others):
    return python_code("forward", {"avx2": text, **others}, {"constant0": 5}, count)


def test_a_wrapper_becomes_a_function():
    made = code()
    symbol = f"{made.name}_cpp_fused_add_0"
    types = ("tensor", "tensor", "int64_t")
    assert made.kernels == (Kernel("forward_cpp_fused_add_0", symbol, types),)
    assert made.text.startswith("def run_forward(args):")
    assert "args.clear" not in made.text and "import" not in made.text
    assert "forward_cpp_fused_add_0(arg1_1, buf0, s0)" in made.text
    assert "mm(buf0, constants[5], out=buf0)" in made.text
    assert made.text.endswith("return [buf0, s0, None]\n")
    assert code(count=1).text.endswith("return [buf0]\n")


def test_kernels_catch_their_exceptions_and_have_names_of_their_own():
    made = code()
    (kernel,) = made.kernels
    source = made.sources["avx2"]
    assert source.startswith("#include <torch/csrc/inductor/cpp_prefix.h>")
    assert f"const char* {kernel.symbol}(const float* a0, float* a1, const int64_t a2)" in source
    assert source.count('extern "C"') == 1 and " TORCH_CHECK" not in source
    assert source.count("AOTI_TORCH_CHECK(ks0 > 0") == 2
    assert code(WRAPPER.replace('"no"', '"other"')).name != made.name


@pytest.mark.parametrize(
    "old, new, why",
    [
        ("def call", "def other", "no function"),
        ("cpp_pybinding", "triton", "made by triton"),
        ("const int64_t']", "const half']", "takes a half"),
        ("extern_kernels.mm", "extern_kernels.mystery", "calls mystery"),
        ("extern_kernels.mm", "torch._inductor.mm", "torch._inductor"),
        ("constant0,", "benchmark_compiled_module,", "uses benchmark_compiled_module"),
        ("return (buf0, s0, None, )", "return buf0", "no tuple"),
        ("    s0 = arg0_1", "    s0 = arg0_1\n    import os", "parts of its own"),
        ("    s0 = arg0_1", "    s0 = arg0_1\n    global x", "state of its own"),
        ("void  kernel(", "void  colonel(", "unknown signature"),
    ],
)
def test_wrappers_that_look_different_are_refused(old, new, why):
    assert old in WRAPPER
    with pytest.raises(Refused, match=why):
        code(WRAPPER.replace(old, new))


def test_isas_may_differ_in_the_kernels_only():
    code(scalar=WRAPPER.replace('"no"', '"other"'))
    with pytest.raises(Refused, match="scalar is called in another way"):
        code(scalar=WRAPPER.replace("(1, )", "(2, )"))


def test_the_runtime_has_what_the_text_may_use():
    assert set(python_parts.NAMES) == NAMES
    assert set(vars(python_parts._EXTERN)) == EXTERN_KERNELS
    ast.parse(code().text)
