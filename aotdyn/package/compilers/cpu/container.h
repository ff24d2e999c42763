// What the generated code of one graph needs, and nothing else: it stands in for AOTInductor's own
// model and container, whose templates are most of what a graph costs to compile.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/csrc/inductor/aoti_runtime/device_utils.h>
#include <torch/csrc/inductor/aoti_runtime/interface.h>
#include <torch/csrc/inductor/aoti_runtime/scalar_to_tensor.h>
#include <torch/csrc/inductor/aoti_runtime/utils.h>
#include <torch/csrc/inductor/aoti_torch/generated/c_shim_cpu.h>

#include <c10/util/generic_math.h>

[[maybe_unused]] inline int64_t align(int64_t size) {
  return (size + 63) & ~int64_t{63};
}

namespace torch::aot_inductor {

struct AOTInductorModelKernelsBase {
  virtual ~AOTInductorModelKernelsBase() = default;
};

// The names with an underscore are those that generated code uses.
struct AotdynGraph {
  AotdynGraph(size_t inputs, size_t outputs) : inputs(inputs), outputs(outputs) {}
  virtual ~AotdynGraph() = default;
  virtual void run_impl(
      AtenTensorHandle* input_handles,
      AtenTensorHandle* output_handles,
      DeviceStreamType stream,
      AOTIProxyExecutorHandle proxy_executor) = 0;

  const size_t inputs;
  const size_t outputs;
  std::unique_ptr<AOTInductorModelKernelsBase> kernels_;
  std::optional<std::string> cubin_dir_;
  int32_t device_type_ = 0;
  int32_t device_idx_ = -1;
};

} // namespace torch::aot_inductor
