"""Generated C++ -> C++ for our container. The one place that knows how AOTInductor's text looks;
what does not look so is refused."""

import hashlib
import json
import re
from collections.abc import Sequence

from ..lowering.lowered import PartCode
from ..refusal import Refused

_INTERFACE_END = '} // extern "C"'
_CONSTRUCTOR = "AOTInductorModel::AOTInductorModel("
_BODY = "using namespace torch::aot_inductor;\nnamespace torch::aot_inductor {\n"
_CONST_RUN = "void AOTInductorModel::_const_run_impl("
_RUN = "void AOTInductorModel::run_impl("
_NAMESPACE_END = "} // namespace torch::aot_inductor"
_ARITY = re.compile(r": AOTInductorModelBase\((\d+),\s*(\d+),\s*(\d+),")
_KERNEL = re.compile(r'extern "C"\s+void\s+(\w+)\(')
_EMPTY_FUNCTION = re.compile(r"\A.*?\) \{\}\n", re.DOTALL)
_CHECKER = re.compile(
    r"^(?:AOTI_NOINLINE )?static (?:void|bool) (?:check_input_\d+|__check_inputs_outputs|"
    r"_check_aoti_runtime_check_inputs_env)\(.*?^}\n",
    re.MULTILINE | re.DOTALL,
)
_CHECKED_LINE = re.compile(r"^.*_check_aoti_runtime_check_inputs_env\(\).*\n", re.MULTILINE)
_CHECK_CALL = "    __check_inputs_outputs(input_handles, output_handles);\n"
_EXTERNAL = re.compile(r"(aoti_torch_proxy_executor_call_function\(proxy_executor, )(\d+)")


def part_code(
    wrapper: str, kernels: dict[str, str], external: str, first: int = 0
) -> PartCode:
    """first: the index of the part's operators in its graph's list. Raises Refused for a text that
    is not as expected."""
    if external and first:
        wrapper = _EXTERNAL.sub(lambda m: f"{m[1]}{int(m[2]) + first}", wrapper)
    facts = json.dumps([wrapper, kernels, external], sort_keys=True)
    name = f"g{hashlib.sha256(facts.encode()).hexdigest()[:20]}"
    names = set(_KERNEL.findall(_declarations(wrapper)))
    for text in kernels.values():
        names.update(_KERNEL.findall(text))
    nodes = tuple(json.dumps(node) for node in json.loads(external)["nodes"]) if external else ()
    return PartCode(
        name,
        _renamed(_class(wrapper, name), names, name),
        {isa: _renamed(text, names, name) if text.strip() else "" for isa, text in kernels.items()},
        nodes,
    )


def table(names: Sequence[str]) -> str:
    """The function that makes the graph with a number."""
    lines = ['#include "container.h"', "using namespace torch::aot_inductor;"]
    lines += [f"AotdynGraph* make_{name}();" for name in dict.fromkeys(names)]
    lines += ["AotdynGraph* aotdyn_graph(size_t number) {", "  switch (number) {"]
    lines += [f"    case {i}: return make_{name}();" for i, name in enumerate(names)]
    lines += ["    default: return nullptr;", "  }", "}", ""]
    return "\n".join(lines)


def _class(wrapper: str, name: str) -> str:
    """The wrapper's text as a class of ours and the function that makes one."""
    head = _declarations(wrapper)
    arity = _ARITY.search(wrapper)
    if arity is None or arity[3] != "0":
        raise Refused("the generated code has constants, or an unknown constructor")
    body = wrapper[_find(wrapper, _BODY) + len(_BODY) :]
    before, _, run = body.partition(_RUN)
    if not run or not before.lstrip().startswith(_CONST_RUN):
        raise Refused("the generated code has an unknown structure")
    between = _CHECKER.sub("", _EMPTY_FUNCTION.sub("", before.lstrip(), count=1))
    run, end, rest = _CHECKED_LINE.sub("", run.replace(_CHECK_CALL, "")).rpartition(_NAMESPACE_END)
    if not end or rest.strip():
        raise Refused("the generated code has an unknown end")
    text = "\n".join(
        [
            '#include "container.h"',
            head,
            _NAMESPACE_END,
            _BODY,
            between,
            f"struct {name} final : AotdynGraph {{",
            f"  {name}() : AotdynGraph({arity[1]}, {arity[2]}) {{",
            "    kernels_ = std::make_unique<AOTInductorModelKernels>();",
            "  }",
            "  void run_impl(AtenTensorHandle*, AtenTensorHandle*, DeviceStreamType,",
            "                AOTIProxyExecutorHandle) override;",
            "};",
            f"void {name}::run_impl({run}",
            _NAMESPACE_END,
            f"AotdynGraph* make_{name}() {{ return new {name}(); }}",
            "",
        ]
    )
    left = set(re.findall(r"\bAOTInductorModel\w*", _without_comments(text)))
    left -= {"AOTInductorModelKernels", "AOTInductorModelKernelsBase"}
    if left or "constants_" in _without_comments(run):
        raise Refused(f"the generated code uses {', '.join(sorted(left)) or 'constants'}")
    return text


def _without_comments(text: str) -> str:
    return re.sub(r"//.*", "", text)


def _declarations(wrapper: str) -> str:
    """What stands between the runtime's interface and the constructor."""
    start = _find(wrapper, _INTERFACE_END) + len(_INTERFACE_END)
    return wrapper[start : _find(wrapper, _CONSTRUCTOR)]


def _find(text: str, marker: str) -> int:
    if text.count(marker) != 1:
        raise Refused(f"the generated code has {marker!r} {text.count(marker)} times")
    return text.index(marker)


def _renamed(text: str, names: set[str], prefix: str) -> str:
    """Kernels are visible in the whole library, so each part's get names of their own."""
    if not names:
        return text
    longest = sorted(names, key=len, reverse=True)
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, longest))})\b")
    return pattern.sub(lambda match: f"{prefix}_{match[1]}", text)
