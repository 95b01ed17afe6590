// Words that tell the GPU's compiler where code runs and data lies. Here all of it is one program.
#pragma once

#define __host__
#define __device__
#define __constant__
#define __global__
#define __managed__
#define __grid_constant__
#define __shared__ harness_shared_variable_of_unknown_form
#define CUDART_CB
#define CUDARTAPI
#define __device_builtin__
#define __nv_pure__

constexpr int warpSize = 32;

#define __CUDA_RUNTIME_H__
#define CUDART_VERSION 12080
#define CUDA_VERSION 12080
