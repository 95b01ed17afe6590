#pragma once
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
namespace at::cuda { using ::harness_emulator::CUDAEvent; }
