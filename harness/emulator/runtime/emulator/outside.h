// From here on come headers that are not written for CUDA. No guard: it is included again and again.
#undef __CUDACC__
#undef __NVCC__
#undef __CUDA_ARCH__
#undef __CUDACC_VER_MAJOR__
#undef __CUDACC_VER_MINOR__
#undef __CUDACC_EXTENDED_LAMBDA__
#undef __CUDACC_RELAXED_CONSTEXPR__
#undef __noinline__
#undef __forceinline__
#undef __align__
