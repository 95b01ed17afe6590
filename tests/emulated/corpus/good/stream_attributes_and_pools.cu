// L2 persistence window on a stream, memory pool threshold, stream priority.
// forward: x * 2
// inputs: x = torch.randn(64)
#include <torch/extension.h>
__global__ void k(const float* x, float* y) { y[threadIdx.x] = 2.f * x[threadIdx.x]; }
torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x); cudaStream_t s; int lo, hi; cudaDeviceGetStreamPriorityRange(&lo, &hi); cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, hi);
  cudaDeviceProp p; cudaGetDeviceProperties(&p, 0); cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, p.persistingL2CacheMaxSize);
  cudaStreamAttrValue a{}; a.accessPolicyWindow.base_ptr = x.data_ptr(); a.accessPolicyWindow.num_bytes = 256; a.accessPolicyWindow.hitRatio = 0.6f; a.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting; a.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
  cudaStreamSetAttribute(s, cudaStreamAttributeAccessPolicyWindow, &a);
  cudaMemPool_t pool; cudaDeviceGetDefaultMemPool(&pool, 0); uint64_t thr = UINT64_MAX; cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &thr);
  k<<<1, 64, 0, s>>>(x.data_ptr<float>(), y.data_ptr<float>()); cudaStreamSynchronize(s); cudaCtxResetPersistingL2Cache(); cudaStreamDestroy(s); return y;
}
