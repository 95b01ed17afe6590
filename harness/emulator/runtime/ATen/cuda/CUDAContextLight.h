#pragma once
#include <ATen/cuda/Exceptions.h>
#include <c10/core/CPUAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <cublas_v2.h>
namespace at::cuda {
using namespace c10::cuda;
using ::harness_emulator::getCurrentDeviceProperties;
using ::harness_emulator::getDeviceProperties;
using ::harness_emulator::is_available;
using ::harness_emulator::warp_size;
using ::harness_emulator::getCurrentCUDABlasHandle;
inline int64_t getNumGPUs() { return 1; }
inline c10::Allocator* getCUDADeviceAllocator() { return c10::GetCPUAllocator(); }
}
