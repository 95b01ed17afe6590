#pragma once
#include <c10/cuda/CUDAMacros.h>
#include <c10/cuda/CUDAMiscFunctions.h>
#include <emulator/torch_cuda.h>
#define C10_CUDA_CHECK(EXPRESSION) ::harness_emulator::check_call(static_cast<int>(EXPRESSION), __FILE__, __LINE__)
#define C10_CUDA_CHECK_WARN(EXPRESSION) static_cast<void>(EXPRESSION)
#define C10_CUDA_ERROR_HANDLED(EXPRESSION) EXPRESSION
#define C10_CUDA_IGNORE_ERROR(EXPRESSION) static_cast<void>(EXPRESSION)
#define C10_CUDA_CLEAR_ERROR() static_cast<void>(cudaGetLastError())
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
