// From here on comes what the candidate wrote. No guard: it is included again and again.
#define __CUDACC__ 1
#define __NVCC__ 1
#ifdef HARNESS_CUDA_ARCH
#define __CUDA_ARCH__ HARNESS_CUDA_ARCH
#else
#define __CUDA_ARCH__ 800
#endif
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 8
#define __CUDACC_EXTENDED_LAMBDA__ 1
#define __CUDACC_RELAXED_CONSTEXPR__ 1
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
#undef assert
#define assert(condition) ((condition) ? static_cast<void>(0) : harness_assert_fails(#condition, __FILE__, __LINE__))
