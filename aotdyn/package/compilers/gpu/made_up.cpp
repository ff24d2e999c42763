// What a build of torch for CPUs lacks to work with fake tensors of a GPU, also in the backward
// pass: device guards that do nothing, and the word that there is such an accelerator. Loaded
// before torch (LD_PRELOAD), so that torch's own answers are not asked for; see made_up.py.
#include <ATen/DeviceAccelerator.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#define EXPORTED __attribute__((visibility("default")))

namespace {

using c10::Device;
using c10::DeviceType;
using c10::Stream;

struct Guard : c10::impl::NoOpDeviceGuardImpl<DeviceType::CUDA> {
  Device exchangeDevice(Device) const override { return device(); }
  Device getDevice() const override { return device(); }
  Stream getStream(Device) const noexcept override { return Stream(Stream::DEFAULT, device()); }
  Stream exchangeStream(Stream) const noexcept override { return getStream(device()); }
  void record(void**, const Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const Stream&) const override {}
  bool queryEvent(void*) const override { return true; }

  static Device device() { return Device(DeviceType::CUDA, 0); }
};

struct Hooks : at::CUDAHooksInterface {
  void init() const override {}
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
};

Guard guard;

[[gnu::constructor]] void register_guard() {
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
