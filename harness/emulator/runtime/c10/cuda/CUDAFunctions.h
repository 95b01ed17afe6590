#pragma once
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAMacros.h>
namespace c10::cuda {
using ::harness_emulator::current_device;
using ::harness_emulator::device_count;
using ::harness_emulator::device_synchronize;
using ::harness_emulator::set_device;
inline c10::DeviceIndex device_count_ensure_non_zero() { return 1; }
inline cudaError_t GetDevice(c10::DeviceIndex* device) { *device = 0; return cudaSuccess; }
inline cudaError_t SetDevice(c10::DeviceIndex) { return cudaSuccess; }
inline void stream_synchronize(cudaStream_t) { device_synchronize(); }
}
