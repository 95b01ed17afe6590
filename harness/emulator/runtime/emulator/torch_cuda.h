// Streams, guards and properties as torch's CUDA headers name them. Those headers here open the parts that theirs declare.
#pragma once
#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/util/Exception.h>

#include "runtime_api.h"

namespace harness_emulator __attribute__((visibility("hidden"))) {

class CUDAStream {
 public:
  CUDAStream() = default;
  explicit CUDAStream(c10::Stream) {}
  operator cudaStream_t() const { return nullptr; }
  operator c10::Stream() const { return unwrap(); }
  cudaStream_t stream() const { return nullptr; }
  c10::DeviceIndex device_index() const { return 0; }
  c10::Device device() const { return c10::Device(c10::DeviceType::CPU); }
  c10::StreamId id() const { return 0; }
  bool query() const { return true; }
  void synchronize() const {}
  int priority() const { return 0; }
  c10::Stream unwrap() const { return c10::Stream(c10::Stream::DEFAULT, device()); }
  bool operator==(const CUDAStream&) const { return true; }
  bool operator!=(const CUDAStream&) const { return false; }
};
inline CUDAStream getCurrentCUDAStream(c10::DeviceIndex = -1) { return {}; }
inline CUDAStream getDefaultCUDAStream(c10::DeviceIndex = -1) { return {}; }
inline CUDAStream getStreamFromPool(bool = false, c10::DeviceIndex = -1) { return {}; }
inline CUDAStream getStreamFromExternal(cudaStream_t, c10::DeviceIndex) { return {}; }
inline void setCurrentCUDAStream(CUDAStream) {}

class CUDAGuard {
 public:
  explicit CUDAGuard(c10::DeviceIndex) {}
  explicit CUDAGuard(c10::Device) {}
  void set_device(c10::Device) {}
  void reset_device(c10::Device) {}
  void set_index(c10::DeviceIndex) {}
  c10::Device original_device() const { return c10::Device(c10::DeviceType::CPU); }
  c10::Device current_device() const { return original_device(); }
};
class OptionalCUDAGuard {
 public:
  OptionalCUDAGuard() = default;
  template <typename T>
  explicit OptionalCUDAGuard(T&&) {}
  void set_device(c10::Device) {}
  void set_index(c10::DeviceIndex) {}
  void reset() {}
};
class CUDAStreamGuard {
 public:
  explicit CUDAStreamGuard(c10::Stream) {}
  void reset_stream(c10::Stream) {}
};
class OptionalCUDAStreamGuard {
 public:
  OptionalCUDAStreamGuard() = default;
  template <typename T>
  explicit OptionalCUDAStreamGuard(T&&) {}
  void reset_stream(c10::Stream) {}
  void reset() {}
};
class CUDAMultiStreamGuard {
 public:
  template <typename T>
  explicit CUDAMultiStreamGuard(T&&) {}
};
class CUDAEvent {
 public:
  explicit CUDAEvent(unsigned = 0) {}
  void record() {}
  void record(const CUDAStream&) {}
  void block(const CUDAStream&) {}
  void recordOnce(const CUDAStream&) {}
  float elapsed_time(const CUDAEvent&) const { return 0.0f; }
  bool isCreated() const { return true; }
  void synchronize() const {}
  bool query() const { return true; }
};

inline c10::DeviceIndex current_device() { return 0; }
inline c10::DeviceIndex device_count() { return 1; }
inline void set_device(c10::DeviceIndex) {}
inline void device_synchronize() {
  const int error = take_error();
  TORCH_CHECK(error == 0, "CUDA error: ", error_text(error));
}
inline bool is_available() { return true; }
inline cudaDeviceProp* getCurrentDeviceProperties() {
  static cudaDeviceProp found = [] {
    cudaDeviceProp properties;
    cudaGetDeviceProperties(&properties, 0);
    return properties;
  }();
  return &found;
}
inline cudaDeviceProp* getDeviceProperties(c10::DeviceIndex) { return getCurrentDeviceProperties(); }
inline int warp_size() { return 32; }

inline void check_call(int error, const char* file, int line) {
  if (error == 0) { return; }
  take_error();
  TORCH_CHECK(false, "CUDA error: ", error_text(error), " (", file, ":", line, ")");
}

}
