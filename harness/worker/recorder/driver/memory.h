// Serves all device memory out of one range of addresses.

#pragma once

#include <algorithm>
#include <map>

#include "recording.h"

namespace {

constexpr CUdeviceptr kFirstAddress = 0x600000000000;
constexpr size_t kRangeBytes = size_t{1} << 42;
constexpr size_t kPage = size_t{2} << 20;
constexpr size_t kSmallestUnit = 512;


class FreeList {  // first fit; neighbours are joined
public:
    void add(size_t start, size_t bytes) {
        auto next = free_.lower_bound(start);
        if (next != free_.end() && start + bytes == next->first) {
            bytes += next->second;
            next = free_.erase(next);
        }
        if (next != free_.begin()) {
            auto before = std::prev(next);
            if (before->first + before->second == start) {
                before->second += bytes;
                return;
            }
        }
        free_[start] = bytes;
    }
    size_t take(size_t bytes, size_t alignment) {  // 0: none
        for (auto at = free_.begin(); at != free_.end(); ++at) {
            size_t start = (at->first + alignment - 1) / alignment * alignment, end = at->first + at->second;
            if (start > end || bytes > end - start) continue;
            size_t first = at->first;
            free_.erase(at);
            if (start > first) free_[first] = start - first;
            if (end > start + bytes) free_[start + bytes] = end - start - bytes;
            return start;
        }
        return 0;
    }

private:
    std::map<size_t, size_t> free_;
};

struct Memory {
    bool reserved = false, available = false;
    size_t unmapped_bytes = 0;  // so far: its addresses may have been mapped again, to other memory
    FreeList addresses, small;
    std::map<CUdeviceptr, size_t> reservations, mapped, small_blocks;
    std::map<CUdeviceptr, size_t> own;  // whole allocations made here

    bool open() {
        if (reserved) return available;
        reserved = true;
        CUdeviceptr start = 0;
        if (REAL(cuMemAddressReserve, "cuMemAddressReserve", &start, kRangeBytes, size_t{0}, kFirstAddress, 0ULL)) return false;
        if (start != kFirstAddress) {
            REAL(cuMemAddressFree, "cuMemAddressFree", start, kRangeBytes);
            return false;
        }
        addresses.add(start, kRangeBytes);
        return available = true;
    }
    static bool contains(CUdeviceptr address) { return address >= kFirstAddress && address < kFirstAddress + kRangeBytes; }

    CUresult create(CUdeviceptr* out, size_t bytes) {
        if (bytes > kRangeBytes) return CUDA_ERROR_OUT_OF_MEMORY;
        size_t rounded = (bytes + kPage - 1) / kPage * kPage;
        size_t start = addresses.take(rounded, kPage);
        if (!start) return CUDA_ERROR_OUT_OF_MEMORY;
        CUresult status = map_new(start, rounded);
        if (status) {
            addresses.add(start, rounded);
            return status;
        }
        mapped[start] = own[start] = rounded;
        *out = start;
        return CUDA_SUCCESS;
    }
    CUresult map_new(CUdeviceptr start, size_t bytes) {
        CUdevice device = 0;
        if (CUresult status = REAL(cuCtxGetDevice, "cuCtxGetDevice", &device)) return status;
        CUmemAllocationProp kind = {};
        kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        kind.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        kind.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
        CUmemGenericAllocationHandle handle;
        if (CUresult status = REAL(cuMemCreate, "cuMemCreate", &handle, bytes, &kind, 0ULL)) return status;
        CUresult status = REAL(cuMemMap, "cuMemMap", start, bytes, size_t{0}, handle, 0ULL);
        REAL(cuMemRelease, "cuMemRelease", handle);
        if (status) return status;
        CUmemAccessDesc access = {kind.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        status = REAL(cuMemSetAccess, "cuMemSetAccess", start, bytes, &access, size_t{1});
        if (status) REAL(cuMemUnmap, "cuMemUnmap", start, bytes);
        return status;
    }
    CUresult allocate(CUdeviceptr* out, size_t bytes) {
        if (!bytes) return CUDA_ERROR_INVALID_VALUE;
        if (bytes >= kPage / 2) return create(out, bytes);
        size_t rounded = (bytes + kSmallestUnit - 1) / kSmallestUnit * kSmallestUnit;
        size_t start = small.take(rounded, kSmallestUnit);
        if (!start) {
            CUdeviceptr page = 0;
            if (CUresult status = create(&page, kPage)) return status;
            own.erase(page);
            small.add(page, kPage);
            start = small.take(rounded, kSmallestUnit);
        }
        small_blocks[start] = rounded;
        *out = start;
        return CUDA_SUCCESS;
    }
    bool owns(CUdeviceptr address) const { return own.count(address) || small_blocks.count(address); }
    CUresult release(CUdeviceptr address) {
        auto block = small_blocks.find(address);
        if (block != small_blocks.end()) {
            small.add(block->first, block->second);
            small_blocks.erase(block);
            return CUDA_SUCCESS;
        }
        size_t bytes = own[address];
        CUresult status = REAL(cuMemUnmap, "cuMemUnmap", address, bytes);
        if (status) return status;
        unmapped_bytes += bytes;
        own.erase(address);
        mapped.erase(address);
        addresses.add(address, bytes);
        return CUDA_SUCCESS;
    }
} memory;


CUresult cuMemAlloc_hook(CUdeviceptr* out, size_t bytes) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    return memory.open() ? memory.allocate(out, bytes) : REAL(cuMemAlloc, "cuMemAlloc_v2", out, bytes);
}
CUresult cuMemAllocPitch_hook(CUdeviceptr* out, size_t* pitch, size_t width, size_t height, unsigned element) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (!memory.open()) return REAL(cuMemAllocPitch, "cuMemAllocPitch_v2", out, pitch, width, height, element);
    *pitch = (width + kSmallestUnit - 1) / kSmallestUnit * kSmallestUnit;
    size_t bytes;
    return __builtin_mul_overflow(*pitch, height, &bytes) ? CUDA_ERROR_OUT_OF_MEMORY : memory.allocate(out, bytes);
}
CUresult free_memory(CUdeviceptr address) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    record_synchronization();  // the same memory may be given out again, for work of another stream
    if (!memory.owns(address)) return REAL(cuMemFree, "cuMemFree_v2", address);
    if (CUresult status = synchronize()) return status;
    return memory.release(address);
}
CUresult cuMemFree_hook(CUdeviceptr address) { return free_memory(address); }

// Allocations in the order of a stream become ordinary ones: no memory nodes in graphs, no pool that another process lacks.

template <bool thread>
CUresult cuMemAllocAsync_hook(CUdeviceptr* out, size_t bytes, CUstream stream) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (memory.open()) return memory.allocate(out, bytes);
    return REAL(cuMemAllocAsync, thread ? "cuMemAllocAsync_ptsz" : "cuMemAllocAsync", out, bytes, stream);
}
template <bool thread>
CUresult cuMemAllocFromPoolAsync_hook(CUdeviceptr* out, size_t bytes, CUmemoryPool pool, CUstream stream) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (memory.open()) return memory.allocate(out, bytes);
    constexpr const char* name = thread ? "cuMemAllocFromPoolAsync_ptsz" : "cuMemAllocFromPoolAsync";
    return REAL(cuMemAllocFromPoolAsync, name, out, bytes, pool, stream);
}
template <bool thread>
CUresult cuMemFreeAsync_hook(CUdeviceptr address, CUstream stream) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (!memory.owns(address)) return REAL(cuMemFreeAsync, thread ? "cuMemFreeAsync_ptsz" : "cuMemFreeAsync", address, stream);
    return capturing ? CUDA_SUCCESS : free_memory(address);  // what a captured graph uses is never freed
}
CUresult cuMemAddressReserve_hook(CUdeviceptr* out, size_t bytes, size_t alignment, CUdeviceptr wanted, unsigned long long flags) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    size_t start = memory.open() ? memory.addresses.take(bytes, std::max(alignment, kPage)) : 0;
    if (!start) return REAL(cuMemAddressReserve, "cuMemAddressReserve", out, bytes, alignment, wanted, flags);
    memory.reservations[start] = bytes;
    *out = start;
    return CUDA_SUCCESS;
}
CUresult cuMemAddressFree_hook(CUdeviceptr address, size_t bytes) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    auto found = memory.reservations.find(address);
    if (found == memory.reservations.end()) return REAL(cuMemAddressFree, "cuMemAddressFree", address, bytes);
    memory.addresses.add(found->first, found->second);
    memory.reservations.erase(found);
    return CUDA_SUCCESS;
}
CUresult cuMemCreate_hook(CUmemGenericAllocationHandle* out, size_t bytes, const CUmemAllocationProp* kind, unsigned long long flags) {
    CUmemAllocationProp exportable = *kind;
    if (kind->location.type == CU_MEM_LOCATION_TYPE_DEVICE) exportable.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return REAL(cuMemCreate, "cuMemCreate", out, bytes, &exportable, flags);
}
CUresult cuMemMap_hook(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags) {
    CUresult status = REAL(cuMemMap, "cuMemMap", address, bytes, offset, handle, flags);
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (!status && Memory::contains(address)) memory.mapped[address] = bytes;
    return status;
}
CUresult cuMemUnmap_hook(CUdeviceptr address, size_t bytes) {
    CUresult status = REAL(cuMemUnmap, "cuMemUnmap", address, bytes);
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (status) return status;
    memory.mapped.erase(memory.mapped.lower_bound(address), memory.mapped.lower_bound(address + bytes));
    memory.unmapped_bytes += bytes;
    return status;
}

}  // namespace
