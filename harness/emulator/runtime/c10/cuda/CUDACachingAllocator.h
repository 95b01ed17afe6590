#pragma once
#include <c10/core/CPUAllocator.h>
#include <c10/cuda/CUDAStream.h>
namespace c10::cuda::CUDACachingAllocator {
inline c10::Allocator* get() { return c10::GetCPUAllocator(); }
inline void* raw_alloc(size_t bytes) { return ::harness_emulator::allocate_device(bytes); }
inline void* raw_alloc_with_stream(size_t bytes, cudaStream_t) { return raw_alloc(bytes); }
inline void raw_delete(void* pointer) { ::harness_emulator::release_device(pointer); }
inline void emptyCache() {}
inline void recordStream(const c10::DataPtr&, c10::cuda::CUDAStream) {}
}
