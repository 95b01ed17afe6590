#pragma once
#include <c10/cuda/CUDAFunctions.h>
namespace c10::cuda {
using ::harness_emulator::CUDAStream;
using ::harness_emulator::getCurrentCUDAStream;
using ::harness_emulator::getDefaultCUDAStream;
using ::harness_emulator::getStreamFromExternal;
using ::harness_emulator::getStreamFromPool;
using ::harness_emulator::setCurrentCUDAStream;
}
namespace at::cuda {
using c10::cuda::CUDAStream;
using c10::cuda::getCurrentCUDAStream;
using c10::cuda::getDefaultCUDAStream;
using c10::cuda::getStreamFromPool;
using c10::cuda::setCurrentCUDAStream;
}
