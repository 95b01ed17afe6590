#pragma once
#include <c10/cuda/CUDAException.h>
#include <cublas_v2.h>
#define AT_CUDA_CHECK(EXPRESSION) C10_CUDA_CHECK(EXPRESSION)
#define TORCH_CUDABLAS_CHECK(EXPRESSION) TORCH_CHECK((EXPRESSION) == CUBLAS_STATUS_SUCCESS, "CUDA error: a cuBLAS call failed: " #EXPRESSION)
