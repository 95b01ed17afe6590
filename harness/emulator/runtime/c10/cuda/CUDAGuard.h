#pragma once
#include <c10/cuda/CUDAMacros.h>
#include <c10/cuda/CUDAStream.h>
namespace c10::cuda {
using ::harness_emulator::CUDAGuard;
using ::harness_emulator::CUDAStreamGuard;
using ::harness_emulator::CUDAMultiStreamGuard;
using ::harness_emulator::OptionalCUDAGuard;
using ::harness_emulator::OptionalCUDAStreamGuard;
}
namespace at::cuda {
using c10::cuda::CUDAGuard;
using c10::cuda::CUDAStreamGuard;
using c10::cuda::CUDAMultiStreamGuard;
using c10::cuda::OptionalCUDAGuard;
using c10::cuda::OptionalCUDAStreamGuard;
}
