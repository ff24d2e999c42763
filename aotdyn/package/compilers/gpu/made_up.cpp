// A GPU in a build of torch for CPUs: its memory is the CPU's, and its operators run as those of the
// CPU. Where graphs are lowered, fake tensors are on it; where programs are recorded for a GPU, they
// run on it. Loaded before torch (LD_PRELOAD), so that torch's own answers about devices are not
// asked for; see made_up.py.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/empty.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <unordered_map>
#include <vector>

#define EXPORTED __attribute__((visibility("default")))

namespace {

using c10::Device;
using c10::DeviceType;
using c10::IValue;
using c10::Storage;
using c10::StorageImpl;
using c10::Stream;
using c10::TensorImpl;

const Device kDevice(DeviceType::CUDA, 0);

// -- what torch asks of a device ---------------------------------------------------------------

struct Guard : c10::impl::NoOpDeviceGuardImpl<DeviceType::CUDA> {
  Device exchangeDevice(Device) const override { return kDevice; }
  Device getDevice() const override { return kDevice; }
  Stream getStream(Device) const noexcept override { return stream(); }
  Stream getDefaultStream(Device) const override { return stream(); }
  Stream getNewStream(Device, int) const override { return stream(); }
  Stream exchangeStream(Stream) const noexcept override { return stream(); }
  void record(void**, const Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeDevice(const c10::DeviceIndex) const override {}

  static Stream stream() { return Stream(Stream::DEFAULT, kDevice); }
};

struct Hooks : at::CUDAHooksInterface {
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex current_device() const override { return 0; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  int getNumGPUs() const override { return 1; }
  void deviceSynchronize(c10::DeviceIndex) const override {}
  long versionCuDNN() const override { return 0; }
  long versionRuntimeCuDNN() const override { return 0; }
  double batchnormMinEpsilonCuDNN() const override { return 0; }
  Device getDeviceFromPtr(void*) const override { return kDevice; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return at::getCPUAllocator(); }
  // Random numbers are the CPU's.
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();
  }
  at::Generator getNewGenerator(c10::DeviceIndex) const override {
    return at::detail::createCPUGenerator();
  }
};

// -- memory ------------------------------------------------------------------------------------

// What is asked of it by `torch.accelerator`: nothing is kept, and nothing is counted.
struct Memory final : c10::DeviceAllocator {
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override { return {}; }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}

  c10::DataPtr allocate(size_t size) override {
    c10::DataPtr found = at::getCPUAllocator()->allocate(size);
    auto release = found.get_deleter();
    void* data = found.get();
    return {data, found.release_context(), release, kDevice};
  }
  c10::DeleterFnPtr raw_deleter() const override { return at::getCPUAllocator()->raw_deleter(); }
  void copy_data(void* to, const void* from, size_t size) const override {
    default_copy_data(to, from, size);
  }
};

Memory memory;

void drop(void* storage) { delete static_cast<Storage*>(storage); }

// The same memory, as the device's. It lives as long as the CPU's storage of it.
c10::DataPtr on_device(const Storage& storage) {
  return {storage.mutable_data(), new Storage(storage), drop, kDevice};
}

// -- operators ---------------------------------------------------------------------------------

bool is_ours(const Device& device) { return device.type() == DeviceType::CUDA; }

// One call: what stands for the tensors that are on the device, and the way back.
class Call {
 public:
  IValue to_cpu(const IValue& value) {
    if (value.isTensor()) return to_cpu(value.toTensor());
    if (value.isStorage()) return to_cpu(value.toStorage());
    if (value.isDevice()) return is_ours(value.toDevice()) ? Device(DeviceType::CPU) : value;
    if (value.isTensorList()) {
      c10::List<at::Tensor> made;
      for (const at::Tensor& each : value.toTensorList()) made.push_back(to_cpu(each));
      return made;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> made;
      for (const std::optional<at::Tensor>& each : value.toOptionalTensorList())
        made.push_back(each.has_value() ? std::make_optional(to_cpu(*each)) : std::nullopt);
      return made;
    }
    return value;
  }

  IValue from_cpu(const IValue& value) {
    if (value.isTensor()) return from_cpu(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> made;
      for (const at::Tensor& each : value.toTensorList()) made.push_back(from_cpu(each));
      return made;
    }
    return value;
  }

  // Tensors that the operator has given other sizes or other memory.
  void update() {
    for (auto& [ours, cpu] : tensors_) {
      auto* from = cpu.unsafeGetTensorImpl();
      if (from->has_storage()) {
        Storage storage = device_storage(from->storage());
        if (storage.unsafeGetStorageImpl() != ours->storage().unsafeGetStorageImpl())
          ours->set_storage_keep_dtype(std::move(storage));
      }
      if (from->sizes() != ours->sizes() || from->strides() != ours->strides() ||
          from->storage_offset() != ours->storage_offset())
        ours->set_sizes_and_strides(from->sizes(), from->strides(), from->storage_offset());
    }
    for (auto& [ours, cpu] : storages_) {
      if (cpu.mutable_data() == ours->mutable_data()) continue;
      ours->set_data_ptr_noswap(on_device(cpu));
      ours->set_nbytes(cpu.nbytes());
    }
  }

  void check_devices(const c10::FunctionSchema& schema) const {
    if (!on_cpu_ || tensors_.empty()) return;
    const std::string& name = schema.name();
    for (const char* part : {"copy", "index", "packed", "set_", "resize", "ctc_loss"})
      if (name.find(part) != std::string::npos) return;
    TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two "
                "devices, cuda:0 and cpu! (when calling ", name, ")");
  }

  // Within an operator fake tensors say that they are without memory, and still come here.
  bool is_for_fakes() const { return tensors_.empty() && on_meta_; }

 private:
  at::Tensor to_cpu(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    if (!is_ours(tensor.device())) {
      kept_.push_back(tensor);
      on_cpu_ |= tensor.device().is_cpu() && tensor.dim() > 0;
      on_meta_ |= tensor.device().is_meta();
      return tensor;
    }
    auto* ours = tensor.unsafeGetTensorImpl();
    for (auto& [known, cpu] : tensors_)
      if (known.get() == ours) return cpu;
    c10::DispatchKeySet keys(c10::DispatchKey::CPU);
    auto cpu = at::detail::make_tensor<TensorImpl>(
        to_cpu(ours->storage()), keys, tensor.dtype());
    auto* made = cpu.unsafeGetTensorImpl();
    made->set_sizes_and_strides(ours->sizes(), ours->strides(), ours->storage_offset());
    if (ours->is_wrapped_number()) made->set_wrapped_number(true);
    if (tensor.is_conj()) made->_set_conj(true);
    if (tensor.is_neg()) made->_set_neg(true);
    tensors_.emplace_back(tensor.getIntrusivePtr(), cpu);
    return cpu;
  }

  Storage to_cpu(const Storage& storage) {
    if (!is_ours(storage.device())) return storage;
    auto* ours = storage.unsafeGetStorageImpl();
    for (auto& [known, cpu] : storages_)
      if (known == ours) return cpu;
    Storage made(
        Storage::use_byte_size_t(), storage.nbytes(),
        c10::DataPtr(ours->mutable_data(), Device(DeviceType::CPU)), at::getCPUAllocator(),
        storage.resizable());
    held_.push_back(storage);
    storages_.emplace_back(ours, made);
    return made;
  }

  at::Tensor from_cpu(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.device().is_cpu()) return tensor;
    for (const at::Tensor& each : kept_)
      if (each.is_same(tensor) ||
          (each.has_storage() && each.storage().is_alias_of(tensor.storage())))
        return tensor;
    for (auto& [ours, cpu] : tensors_)
      if (cpu.is_same(tensor)) return at::Tensor(ours);
    auto made = with_memory_of(device_storage(tensor.storage()), tensor.dtype());
    auto* impl = made.unsafeGetTensorImpl();
    impl->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
    if (tensor.is_conj()) impl->_set_conj(true);
    if (tensor.is_neg()) impl->_set_neg(true);
    return made;
  }

  // A view of a tensor that takes part in autograd does so in inference mode, too.
  at::Tensor with_memory_of(Storage storage, caffe2::TypeMeta dtype) {
    for (auto& [ours, cpu] : tensors_)
      if (ours->storage().is_alias_of(storage)) {
        const auto keys = ours->key_set() - c10::DispatchKeySet(
            {c10::DispatchKey::Conjugate, c10::DispatchKey::Negative});
        return at::detail::make_tensor<TensorImpl>(
            TensorImpl::VIEW, std::move(storage), keys, dtype);
      }
    c10::DispatchKeySet keys(c10::DispatchKey::CUDA);
    return at::detail::make_tensor<TensorImpl>(std::move(storage), keys, dtype);
  }

  Storage device_storage(const Storage& cpu) {
    auto* wanted = cpu.unsafeGetStorageImpl();
    for (size_t i = 0; i < storages_.size(); i++)
      if (storages_[i].second.unsafeGetStorageImpl() == wanted) return held_[i];
    Storage made(
        Storage::use_byte_size_t(), cpu.nbytes(), on_device(cpu), &memory, cpu.resizable());
    held_.push_back(made);
    storages_.emplace_back(made.unsafeGetStorageImpl(), cpu);
    return made;
  }

  // The device's, and what stands for it on the CPU.
  std::vector<std::pair<c10::intrusive_ptr<TensorImpl, c10::UndefinedTensorImpl>, at::Tensor>>
      tensors_;
  std::vector<std::pair<StorageImpl*, Storage>> storages_;
  std::vector<Storage> held_;  // those of `storages_`, in order
  std::vector<at::Tensor> kept_;  // that are on the CPU
  bool on_cpu_ = false;
  bool on_meta_ = false;
};

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  at::AutoDispatchBelowADInplaceOrView below;
  c10::impl::ExcludeDispatchKeyGuard no_casts(c10::DispatchKey::AutocastCPU);
  const auto& schema = op.schema();
  Call call;
  const size_t first = stack->size() - schema.arguments().size();
  for (size_t i = first; i < stack->size(); i++) (*stack)[i] = call.to_cpu((*stack)[i]);
  call.check_devices(schema);
  if (call.is_for_fakes()) {
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), stack);
    return;
  }
  op.callBoxed(stack);
  call.update();
  const size_t results = stack->size() - schema.returns().size();
  for (size_t i = results; i < stack->size(); i++) (*stack)[i] = call.from_cpu((*stack)[i]);
}

// Whether the results are on a device that the caller names.
bool chooses_device(const c10::FunctionSchema& schema) {
  for (const auto& argument : schema.arguments())
    if (argument.name() == "device") return true;
  return false;
}

// Memory is free when it is given back: no stream is still to read it.
void record_stream(at::Tensor&, c10::Stream) {}

// Nothing is by libraries for GPUs.
bool not_by_a_library(
    const at::Tensor&, const at::Tensor&, c10::IntArrayRef, c10::IntArrayRef, int64_t) {
  return false;
}
bool not_by_a_library_either(
    const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, int64_t) {
  return false;
}

Guard guard;

[[gnu::constructor]] void start() {
  c10::SetAllocator(DeviceType::CUDA, &memory, 255);
  c10::impl::device_guard_impl_registry[static_cast<size_t>(DeviceType::CUDA)].store(&guard);
}

}  // namespace

namespace at {
namespace accelerator {
EXPORTED std::optional<DeviceType> getAccelerator(bool) { return DeviceType::CUDA; }
}  // namespace accelerator
namespace detail {
EXPORTED const CUDAHooksInterface& getCUDAHooks() {
  static Hooks* hooks = new Hooks;
  return *hooks;
}
}  // namespace detail
}  // namespace at

TORCH_LIBRARY_IMPL(_, CUDA, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
}

// Where one implementation is for all devices, it looks for kernels of the device by itself.
TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("record_stream", TORCH_FN(record_stream));
  m.impl("_use_cudnn_ctc_loss", TORCH_FN(not_by_a_library));
  m.impl("_use_cudnn_ctc_loss.Tensor", TORCH_FN(not_by_a_library_either));
  m.impl("_use_miopen_ctc_loss", TORCH_FN(not_by_a_library));
  m.impl("_use_miopen_ctc_loss.Tensor", TORCH_FN(not_by_a_library_either));
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0) continue;
    const auto op = dispatcher.findSchema(name);
    if (!op || !op->hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
        op->hasKernelForDispatchKey(c10::DispatchKey::CUDA))
      continue;
    if (chooses_device(op->schema())) continue;
    // Those that only change sizes and strides work on tensors without memory, too.
    if (op->hasTag(at::Tag::inplace_view)) continue;
    const std::string& overload = name.overload_name;
    const std::string text = overload.empty() ? name.name : name.name + "." + overload;
    m.impl(text.c_str(), torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
  }
}
