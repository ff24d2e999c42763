// The C interface that torch's AOTIModelContainerRunnerCpu loads, for a library of many graphs.
// Graphs have no state, so that any number of threads may run one.
#include "container.h"

#include <stdexcept>

using namespace torch::aot_inductor;

// Generated: the graph with a number, or null.
AotdynGraph* aotdyn_graph(size_t number);

namespace {

thread_local std::string last_error;

AotdynGraph* graph_of(AOTInductorModelContainerHandle handle) {
  return reinterpret_cast<AotdynGraph*>(handle);
}

class NoGrad {
 public:
  NoGrad() : before_(aoti_torch_grad_mode_is_enabled()) {
    aoti_torch_grad_mode_set_enabled(false);
  }
  ~NoGrad() {
    aoti_torch_grad_mode_set_enabled(before_);
  }

 private:
  const bool before_;
};

// No exception may leave the library: torch asks for its text and raises its own.
template <typename Action>
AOTIRuntimeError guarded(Action&& action) {
  try {
    action();
    return AOTI_RUNTIME_SUCCESS;
  } catch (const std::exception& error) {
    last_error = error.what();
  } catch (...) {
    last_error = "unknown C++ exception";
  }
  return AOTI_RUNTIME_FAILURE;
}

AOTIRuntimeError not_here() {
  last_error = "a graph of a package has no constants of its own";
  return AOTI_RUNTIME_FAILURE;
}

} // namespace

extern "C" {

// The number of models is the number of the graph, counted from one.
AOTI_API AOTIRuntimeError AOTInductorModelContainerCreateWithDevice(
    AOTInductorModelContainerHandle* handle, size_t number, const char*, const char*) {
  return guarded([&] {
    AotdynGraph* graph = number ? aotdyn_graph(number - 1) : nullptr;
    if (graph == nullptr) {
      throw std::out_of_range("the library has no graph " + std::to_string(number));
    }
    *handle = reinterpret_cast<AOTInductorModelContainerHandle>(graph);
  });
}

AOTI_API AOTIRuntimeError AOTInductorModelContainerDelete(AOTInductorModelContainerHandle handle) {
  return guarded([&] { delete graph_of(handle); });
}

AOTI_API AOTIRuntimeError AOTInductorModelContainerRun(
    AOTInductorModelContainerHandle handle,
    AtenTensorHandle* inputs, size_t input_count,
    AtenTensorHandle* outputs, size_t output_count,
    AOTInductorStreamHandle stream, AOTIProxyExecutorHandle proxy_executor) {
  return guarded([&] {
    AotdynGraph* graph = graph_of(handle);
    if (input_count != graph->inputs || output_count != graph->outputs) {
      throw std::invalid_argument(
          "a graph of " + std::to_string(graph->inputs) + " inputs was given " +
          std::to_string(input_count));
    }
    NoGrad no_grad;
    graph->run_impl(inputs, outputs, reinterpret_cast<DeviceStreamType>(stream), proxy_executor);
  });
}

AOTI_API AOTIRuntimeError AOTInductorModelContainerRunSingleThreaded(
    AOTInductorModelContainerHandle handle,
    AtenTensorHandle* inputs, size_t input_count,
    AtenTensorHandle* outputs, size_t output_count,
    AOTInductorStreamHandle stream, AOTIProxyExecutorHandle proxy_executor) {
  return AOTInductorModelContainerRun(
      handle, inputs, input_count, outputs, output_count, stream, proxy_executor);
}

AOTI_API AOTIRuntimeError AOTInductorModelContainerGetNumOutputs(
    AOTInductorModelContainerHandle handle, size_t* count) {
  *count = graph_of(handle)->outputs;
  return AOTI_RUNTIME_SUCCESS;
}

AOTI_API AOTIRuntimeError AOTInductorModelContainerGetNumConstants(
    AOTInductorModelContainerHandle, size_t* count) {
  *count = 0;
  return AOTI_RUNTIME_SUCCESS;
}

AOTI_API AOTIRuntimeError AOTInductorModelContainerGetConstantsBlobSize(
    AOTInductorModelContainerHandle, uint64_t* size) {
  *size = 0;
  return AOTI_RUNTIME_SUCCESS;
}

AOTI_API AOTIRuntimeError AOTInductorModelContainerGetCallSpec(
    AOTInductorModelContainerHandle, const char** in, const char** out) {
  *in = *out = "";
  return AOTI_RUNTIME_SUCCESS;
}

AOTI_API AOTIRuntimeError AOTInductorGetLastError(const char** message) {
  *message = last_error.c_str();
  return AOTI_RUNTIME_SUCCESS;
}

// The rest is about constants. The runner wants these symbols to be there.

AOTI_API AOTIRuntimeError AOTInductorModelContainerGetConstantName(
    AOTInductorModelContainerHandle, size_t, const char**) {
  return not_here();
}

AOTI_API AOTIRuntimeError AOTInductorModelContainerGetConstantOriginalFQN(
    AOTInductorModelContainerHandle, size_t, const char**) {
  return not_here();
}

AOTI_API AOTIRuntimeError AOTInductorModelContainerGetConstantDtype(
    AOTInductorModelContainerHandle, size_t, int32_t*) {
  return not_here();
}

AOTI_API AOTIRuntimeError AOTInductorModelContainerExtractConstantsMap(
    AOTInductorModelContainerHandle, AOTInductorConstantMapHandle, bool) {
  return not_here();
}

AOTI_API AOTIRuntimeError AOTInductorModelContainerUpdateConstantBuffer(
    AOTInductorModelContainerHandle, AOTInductorConstantMapHandle, bool, bool) {
  return not_here();
}

AOTI_API AOTIRuntimeError AOTInductorModelContainerUpdateUserManagedConstantBuffer(
    AOTInductorModelContainerHandle, AOTInductorConstantMapHandle, bool, bool) {
  return not_here();
}

AOTI_API AOTIRuntimeError AOTInductorModelContainerUpdateConstantBufferFromCpu(
    AOTInductorModelContainerHandle, AOTInductorConstantMapHandle, bool, bool) {
  return not_here();
}

AOTI_API AOTIRuntimeError AOTInductorModelContainerUpdateInactiveConstantBuffer(
    AOTInductorModelContainerHandle, AOTInductorConstantMapHandle) {
  return not_here();
}

AOTI_API AOTIRuntimeError AOTInductorModelContainerRunConstantFolding(
    AOTInductorModelContainerHandle, bool, AOTInductorStreamHandle, AOTIProxyExecutorHandle) {
  return not_here();
}

AOTI_API AOTIRuntimeError AOTInductorModelContainerSwapConstantBuffer(
    AOTInductorModelContainerHandle) {
  return not_here();
}

AOTI_API AOTIRuntimeError AOTInductorModelContainerFreeInactiveConstantBuffer(
    AOTInductorModelContainerHandle) {
  return not_here();
}

AOTI_API AOTIRuntimeError AOTInductorModelUpdateConstantsFromBlob(
    AOTInductorModelContainerHandle, const uint8_t*) {
  return not_here();
}

} // extern "C"
