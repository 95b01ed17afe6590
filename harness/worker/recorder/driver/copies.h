// Records copies and sets.

#pragma once

#include <string.h>

#include "memory.h"

namespace {

constexpr size_t kMostHostBytes = 4096;  // that one call copies from the host: constants, such as sizes


bool is_device(CUdeviceptr address) {
    if (Memory::contains(address)) return true;
    unsigned kind = 0;
    CUresult status = REAL(cuPointerGetAttribute, "cuPointerGetAttribute", static_cast<void*>(&kind), CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    return !status && kind == CU_MEMORYTYPE_DEVICE;
}
void record_copy(CUdeviceptr target, CUdeviceptr source, size_t bytes, int stream, bool is_synchronous) {
    if (!bytes) return;
    std::string place = std::to_string(stream) + "," + std::to_string(target) + ",";
    if (!is_device(target)) {
        add("[\"read\"," + std::to_string(stream) + "," + std::to_string(source) + "," + std::to_string(bytes) + "]");
        if (is_device(source)) refuse("device memory is read back to the host");
    } else if (is_device(source)) {
        add("[\"copy\"," + place + std::to_string(source) + "," + std::to_string(bytes) + "]");
    } else if ((recording.host_bytes += bytes) > kMostHostBytes) {
        refuse("data is copied from the host");
    } else {
        add("[\"write\"," + place + std::to_string(recording.blob.size()) + "," + std::to_string(bytes) + "]");
        recording.blob.append(reinterpret_cast<const char*>(source), bytes);
        if (is_synchronous) record_synchronization();
    }
}
// Recorded before the call, since the host may change its memory afterwards.
#define COPY(hook, function, symbol, thread_symbol, target, source, bytes, stream, parameters, ...)                \
    template <bool thread>                                                                                          \
    CUresult hook parameters {                                                                                      \
        std::unique_lock<std::recursive_mutex> lock(guard);                                                         \
        bool wanted = records(stream, thread);                                                                      \
        size_t before = recording.operations.size();                                                                \
        if (wanted) record_copy(CUdeviceptr(target), CUdeviceptr(source), bytes, stream_id(stream, thread), !strstr(symbol, "Async")); \
        lock.unlock();                                                                                              \
        CUresult status = REAL(function, thread ? thread_symbol : symbol, __VA_ARGS__);                             \
        lock.lock();                                                                                                \
        if (status && wanted) recording.operations.resize(std::min(before, recording.operations.size()));           \
        return status;                                                                                              \
    }
COPY(copy_hook, cuMemcpy, "cuMemcpy", "cuMemcpy_ptds", to, from, n, nullptr, (CUdeviceptr to, CUdeviceptr from, size_t n), to, from, n)
COPY(copy_async_hook, cuMemcpyAsync, "cuMemcpyAsync", "cuMemcpyAsync_ptsz", to, from, n, s, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s), to, from, n, s)
COPY(h2d_hook, cuMemcpyHtoD, "cuMemcpyHtoD_v2", "cuMemcpyHtoD_v2_ptds", to, from, n, nullptr, (CUdeviceptr to, const void* from, size_t n), to, from, n)
COPY(h2d_async_hook, cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync_v2_ptsz", to, from, n, s, (CUdeviceptr to, const void* from, size_t n, CUstream s), to, from, n, s)
COPY(d2h_hook, cuMemcpyDtoH, "cuMemcpyDtoH_v2", "cuMemcpyDtoH_v2_ptds", to, from, n, nullptr, (void* to, CUdeviceptr from, size_t n), to, from, n)
COPY(d2h_async_hook, cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoHAsync_v2_ptsz", to, from, n, s, (void* to, CUdeviceptr from, size_t n, CUstream s), to, from, n, s)
COPY(d2d_hook, cuMemcpyDtoD, "cuMemcpyDtoD_v2", "cuMemcpyDtoD_v2_ptds", to, from, n, nullptr, (CUdeviceptr to, CUdeviceptr from, size_t n), to, from, n)
COPY(d2d_async_hook, cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoDAsync_v2_ptsz", to, from, n, s, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s), to, from, n, s)

void record_set(CUdeviceptr target, size_t pitch, unsigned width_bytes, unsigned value, size_t width, size_t height, int stream) {
    add("[\"set\"," + std::to_string(stream) + "," + std::to_string(target) + "," + std::to_string(pitch) + "," + std::to_string(width_bytes) + "," +
        std::to_string(value) + "," + std::to_string(width) + "," + std::to_string(height) + "]");
}
#define SET(hook, function, symbol, thread_symbol, element, pitch, height, stream, parameters, ...)                                \
    template <bool thread>                                                                                                    \
    CUresult hook parameters {                                                                                                \
        CUresult status = REAL(function, thread ? thread_symbol : symbol, __VA_ARGS__);                                       \
        std::lock_guard<std::recursive_mutex> lock(guard);                                                                    \
        if (!status && records(stream, thread)) record_set(to, pitch, element, value, n, height, stream_id(stream, thread));   \
        return status;                                                                                                        \
    }
SET(set8, cuMemsetD8, "cuMemsetD8_v2", "cuMemsetD8_v2_ptds", 1, 0, 1, nullptr, (CUdeviceptr to, unsigned char value, size_t n), to, value, n)
SET(set16, cuMemsetD16, "cuMemsetD16_v2", "cuMemsetD16_v2_ptds", 2, 0, 1, nullptr, (CUdeviceptr to, unsigned short value, size_t n), to, value, n)
SET(set32, cuMemsetD32, "cuMemsetD32_v2", "cuMemsetD32_v2_ptds", 4, 0, 1, nullptr, (CUdeviceptr to, unsigned value, size_t n), to, value, n)
SET(set8_async, cuMemsetD8Async, "cuMemsetD8Async", "cuMemsetD8Async_ptsz", 1, 0, 1, s, (CUdeviceptr to, unsigned char value, size_t n, CUstream s), to, value, n, s)
SET(set16_async, cuMemsetD16Async, "cuMemsetD16Async", "cuMemsetD16Async_ptsz", 2, 0, 1, s, (CUdeviceptr to, unsigned short value, size_t n, CUstream s), to, value, n, s)
SET(set32_async, cuMemsetD32Async, "cuMemsetD32Async", "cuMemsetD32Async_ptsz", 4, 0, 1, s, (CUdeviceptr to, unsigned value, size_t n, CUstream s), to, value, n, s)
SET(set2d8_async, cuMemsetD2D8Async, "cuMemsetD2D8Async", "cuMemsetD2D8Async_ptsz", 1, p, h, s, (CUdeviceptr to, size_t p, unsigned char value, size_t n, size_t h, CUstream s), to, p, value, n, h, s)
SET(set2d32_async, cuMemsetD2D32Async, "cuMemsetD2D32Async", "cuMemsetD2D32Async_ptsz", 4, p, h, s, (CUdeviceptr to, size_t p, unsigned value, size_t n, size_t h, CUstream s), to, p, value, n, h, s)

template <bool thread>
CUresult copy2d_async_hook(const CUDA_MEMCPY2D* copy, CUstream stream) {
    CUresult status = REAL(cuMemcpy2DAsync, thread ? "cuMemcpy2DAsync_v2_ptsz" : "cuMemcpy2DAsync_v2", copy, stream);
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (status || !records(stream, thread)) return status;
    auto on_device = [](CUmemorytype kind, CUdeviceptr address) {
        return kind == CU_MEMORYTYPE_DEVICE || (kind == CU_MEMORYTYPE_UNIFIED && is_device(address));
    };
    if (!on_device(copy->srcMemoryType, copy->srcDevice) || !on_device(copy->dstMemoryType, copy->dstDevice)) refuse("a two-dimensional copy of host memory");
    else add("[\"copy2d\"," + std::to_string(stream_id(stream, thread)) + ",\"" + hex(copy, sizeof *copy) + "\"]");
    return status;
}

}  // namespace
