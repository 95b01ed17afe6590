#pragma once
#include <ATen/cuda/Atomic.cuh>
#include <ATen/cuda/CUDAContext.h>
