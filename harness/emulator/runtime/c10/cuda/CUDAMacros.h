#pragma once
#include <emulator/torch_cuda.h>
#define C10_CUDA_API
#define C10_COMPILE_TIME_MAX_GPUS 120
