// CUDA's runtime API, as far as host code uses it: one device, on which everything is done when a call returns.
#pragma once
#include <algorithm>
#include <chrono>

#include "core.h"

enum cudaError : int {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidSymbol = 13,
  cudaErrorInvalidDevicePointer = 17,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchOutOfResources = 701,
  cudaErrorLaunchTimeout = 702,
  cudaErrorAssert = 710,
  cudaErrorMisalignedAddress = 716,
  cudaErrorLaunchFailure = 719,
  cudaErrorCooperativeLaunchTooLarge = 720,
  cudaErrorNotSupported = 801,
  cudaErrorUnknown = 999
};
using cudaError_t = cudaError;
enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4
};
enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9,
  cudaFuncAttributeNonPortableClusterSizeAllowed = 13
};
enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1, cudaFuncCachePreferEqual };
enum cudaSharedMemConfig { cudaSharedMemBankSizeDefault, cudaSharedMemBankSizeFourByte, cudaSharedMemBankSizeEightByte };
enum cudaSharedCarveout { cudaSharedmemCarveoutDefault = -1, cudaSharedmemCarveoutMaxShared = 100, cudaSharedmemCarveoutMaxL1 = 0 };
enum cudaLimit { cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize, cudaLimitPersistingL2CacheSize = 6 };
enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrMaxBlockDimX = 2,
  cudaDevAttrMaxBlockDimY = 3,
  cudaDevAttrMaxBlockDimZ = 4,
  cudaDevAttrMaxGridDimX = 5,
  cudaDevAttrMaxGridDimY = 6,
  cudaDevAttrMaxGridDimZ = 7,
  cudaDevAttrMaxSharedMemoryPerBlock = 8,
  cudaDevAttrTotalConstantMemory = 9,
  cudaDevAttrWarpSize = 10,
  cudaDevAttrMaxRegistersPerBlock = 12,
  cudaDevAttrClockRate = 13,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrL2CacheSize = 38,
  cudaDevAttrMaxThreadsPerMultiProcessor = 39,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
  cudaDevAttrMaxRegistersPerMultiprocessor = 82,
  cudaDevAttrCooperativeLaunch = 95,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
  cudaDevAttrMaxBlocksPerMultiprocessor = 106
};
constexpr unsigned cudaStreamDefault = 0, cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventBlockingSync = 1,
                   cudaEventDisableTiming = 2, cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2,
                   cudaHostAllocWriteCombined = 4, cudaHostRegisterDefault = 0, cudaMemAttachGlobal = 1, cudaMemAttachHost = 2,
                   cudaDeviceScheduleBlockingSync = 4;
constexpr int cudaCpuDeviceId = -1, cudaInvalidDeviceId = -2;

struct CUstream_st {
  int number = 0;
};
struct CUevent_st {
  uint64_t at_ns = 0;
};
using cudaStream_t = CUstream_st*;
using cudaEvent_t = CUevent_st*;
#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)

struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerMultiprocessor, sharedMemPerBlockOptin, totalConstMem;
  int regsPerBlock, regsPerMultiprocessor, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate, major,
      minor, multiProcessorCount, maxThreadsPerMultiProcessor, maxBlocksPerMultiProcessor, l2CacheSize, memoryClockRate,
      memoryBusWidth, cooperativeLaunch, concurrentKernels, unifiedAddressing, integrated, persistingL2CacheMaxSize,
      reservedSharedMemPerBlock, asyncEngineCount, managedMemory, canMapHostMemory, ECCEnabled, computeMode, pciBusID, pciDeviceID, pciDomainID,
      deviceOverlap, kernelExecTimeoutEnabled, isMultiGpuBoard, streamPrioritiesSupported, globalL1CacheSupported,
      localL1CacheSupported, concurrentManagedAccess, pageableMemoryAccess, accessPolicyMaxWindowSize, tccDriver,
      multiGpuBoardGroupID, hostNativeAtomicSupported, computePreemptionSupported, canUseHostPointerForRegisteredMem,
      cooperativeMultiDeviceLaunch, singleToDoublePrecisionPerfRatio, pageableMemoryAccessUsesHostPageTables,
      directManagedMemAccessFromHost, hostRegisterSupported, memoryPoolsSupported, clusterLaunch, unifiedFunctionPointers,
      maxTexture1D, maxTexture2D[2], maxTexture3D[3], maxSurface2D[2];
  size_t memPitch, textureAlignment, texturePitchAlignment, surfaceAlignment;
};
struct cudaFuncAttributes {
  size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA, maxDynamicSharedSizeBytes, preferredShmemCarveout;
};

namespace harness_emulator __attribute__((visibility("hidden"))) {
void allow_shared(const void* key, int bytes);
void configure_cooperative();
const char* error_name(int error);
const char* error_text(int error);
inline cudaError_t answer(int error) {
  set_error(error);
  return static_cast<cudaError_t>(error);
}
}

inline cudaError_t cudaGetLastError() { return static_cast<cudaError_t>(harness_emulator::take_error()); }
inline cudaError_t cudaPeekAtLastError() { return static_cast<cudaError_t>(harness_emulator::peek_error()); }
inline const char* cudaGetErrorString(cudaError_t error) { return harness_emulator::error_text(error); }
inline const char* cudaGetErrorName(cudaError_t error) { return harness_emulator::error_name(error); }

// A launch that failed is reported where the host waits for it, once; cudaGetLastError gives it again.
inline cudaError_t cudaDeviceSynchronize() { return static_cast<cudaError_t>(harness_emulator::peek_error()); }
inline cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
inline cudaError_t cudaDeviceReset() { return cudaSuccess; }
inline cudaError_t cudaGetDevice(int* device) { *device = 0; return cudaSuccess; }
inline cudaError_t cudaSetDevice(int device) { return harness_emulator::answer(device > 0 ? cudaErrorInvalidDevice : cudaSuccess); }
inline cudaError_t cudaGetDeviceCount(int* count) { *count = 1; return cudaSuccess; }

inline cudaError_t harness_malloc(void** pointer, size_t bytes) {
  if (bytes > harness_emulator_target.total_memory_bytes) { return harness_emulator::answer(cudaErrorMemoryAllocation); }
  *pointer = bytes ? harness_emulator::allocate_device(bytes) : nullptr;
  return harness_emulator::answer(bytes && !*pointer ? cudaErrorMemoryAllocation : cudaSuccess);
}
inline cudaError_t cudaFree(void* pointer) {
  return harness_emulator::answer(pointer && !harness_emulator::release_device(pointer) ? cudaErrorInvalidValue : cudaSuccess);
}
template <typename T>
cudaError_t cudaMalloc(T** pointer, size_t bytes) { return harness_malloc(reinterpret_cast<void**>(pointer), bytes); }
template <typename T>
cudaError_t cudaMallocManaged(T** pointer, size_t bytes, unsigned = cudaMemAttachGlobal) { return cudaMalloc(pointer, bytes); }
template <typename T>
cudaError_t cudaMallocHost(T** pointer, size_t bytes, unsigned = 0) { return cudaMalloc(pointer, bytes); }
template <typename T>
cudaError_t cudaHostAlloc(T** pointer, size_t bytes, unsigned) { return cudaMalloc(pointer, bytes); }
template <typename T>
cudaError_t cudaMallocAsync(T** pointer, size_t bytes, cudaStream_t) { return cudaMalloc(pointer, bytes); }
inline cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) { return cudaFree(pointer); }
inline cudaError_t cudaFreeHost(void* pointer) { return cudaFree(pointer); }
inline cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = harness_emulator_target.total_memory_bytes;
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  if (bytes && (!to || !from)) { return harness_emulator::answer(cudaErrorInvalidValue); }
  harness_emulator::copy_bytes(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t = nullptr) {
  return cudaMemcpy(to, from, bytes, kind);
}
inline cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  if (bytes && !to) { return harness_emulator::answer(cudaErrorInvalidValue); }
  harness_emulator::fill_bytes(to, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t = nullptr) { return cudaMemset(to, value, bytes); }
inline cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                                cudaMemcpyKind kind) {
  for (size_t i = 0; i < height; ++i) {
    cudaMemcpy(static_cast<char*>(to) + i * to_pitch, static_cast<const char*>(from) + i * from_pitch, width, kind);
  }
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                                     cudaMemcpyKind kind, cudaStream_t = nullptr) {
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}
template <typename T>
cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* from, size_t bytes, size_t offset = 0,
                               cudaMemcpyKind = cudaMemcpyHostToDevice) {
  if (offset + bytes > sizeof(T)) { return harness_emulator::answer(cudaErrorInvalidValue); }
  harness_emulator::copy_bytes(reinterpret_cast<char*>(const_cast<std::remove_const_t<T>*>(&symbol)) + offset, from, bytes);
  return cudaSuccess;
}
template <typename T>
cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* from, size_t bytes, size_t offset = 0,
                                    cudaMemcpyKind kind = cudaMemcpyHostToDevice, cudaStream_t = nullptr) {
  return cudaMemcpyToSymbol(symbol, from, bytes, offset, kind);
}
template <typename T>
cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t bytes, size_t offset = 0,
                                 cudaMemcpyKind = cudaMemcpyDeviceToHost) {
  if (offset + bytes > sizeof(T)) { return harness_emulator::answer(cudaErrorInvalidValue); }
  harness_emulator::copy_bytes(to, reinterpret_cast<const char*>(&symbol) + offset, bytes);
  return cudaSuccess;
}
template <typename T>
cudaError_t cudaGetSymbolAddress(void** address, const T& symbol) {
  *address = const_cast<void*>(static_cast<const void*>(&symbol));
  return cudaSuccess;
}

template <typename T>
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, size_t bytes, size_t offset = 0,
                                      cudaMemcpyKind kind = cudaMemcpyDeviceToHost, cudaStream_t = nullptr) {
  return cudaMemcpyFromSymbol(to, symbol, bytes, offset, kind);
}
template <typename T>
cudaError_t cudaGetSymbolSize(size_t* bytes, const T&) {
  *bytes = sizeof(T);
  return cudaSuccess;
}
template <typename T>
cudaError_t cudaMallocPitch(T** pointer, size_t* pitch, size_t width, size_t height) {
  *pitch = (width + 511) & ~size_t(511);
  return cudaMalloc(pointer, *pitch * height);
}
inline cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  for (size_t i = 0; i < height; ++i) { cudaMemset(static_cast<char*>(to) + i * pitch, value, width); }
  return cudaSuccess;
}
inline cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height, cudaStream_t = nullptr) {
  return cudaMemset2D(to, pitch, value, width, height);
}
inline cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) { return cudaMemcpy(to, from, bytes, cudaMemcpyDefault); }
inline cudaError_t cudaHostRegister(void*, size_t, unsigned) { return cudaSuccess; }
inline cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }
template <typename T>
cudaError_t cudaHostGetDevicePointer(T** device, void* host, unsigned) {
  *device = static_cast<T*>(host);
  return cudaSuccess;
}
inline cudaError_t cudaMemPrefetchAsync(const void*, size_t, int, cudaStream_t = nullptr) { return cudaSuccess; }
enum cudaMemoryAdvise { cudaMemAdviseSetReadMostly = 1, cudaMemAdviseSetPreferredLocation = 3, cudaMemAdviseSetAccessedBy = 5 };
inline cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, int) { return cudaSuccess; }
inline cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) { *can = 0; return cudaSuccess; }
inline cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  *value = limit == cudaLimitStackSize ? 1024 : size_t(8) << 20;
  return cudaSuccess;
}
inline cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }

inline cudaError_t cudaStreamCreate(cudaStream_t* stream) { *stream = new CUstream_st; return cudaSuccess; }
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return cudaStreamCreate(stream); }
inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) { return cudaStreamCreate(stream); }
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) { delete stream; return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaDeviceSynchronize(); }
inline cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) { return cudaSuccess; }
inline cudaError_t cudaEventCreate(cudaEvent_t* event) { *event = new CUevent_st; return cudaSuccess; }
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
inline cudaError_t cudaEventDestroy(cudaEvent_t event) { delete event; return cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t = nullptr) {
  event->at_ns = harness_emulator::read_clock();
  return cudaSuccess;
}
inline cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream = nullptr, unsigned = 0) {
  return cudaEventRecord(event, stream);
}
using cudaHostFn_t = void (*)(void*);
inline cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* data) {
  function(data);
  return cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaDeviceSynchronize(); }
inline cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  *ms = float(double(end->at_ns - start->at_ns) * 1e-6);
  return cudaSuccess;
}

inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* found, int device) {
  if (device != 0 && device != -1) { return harness_emulator::answer(cudaErrorInvalidDevice); }
  const harness_emulator::Target& target = harness_emulator_target;
  *found = cudaDeviceProp{};
  std::strncpy(found->name, target.name, sizeof found->name - 1);
  found->totalGlobalMem = target.total_memory_bytes;
  found->sharedMemPerBlock = size_t(target.static_shared_bytes_per_block);
  found->sharedMemPerBlockOptin = size_t(target.max_shared_bytes_per_block);
  found->sharedMemPerMultiprocessor = size_t(target.shared_bytes_per_multiprocessor);
  found->totalConstMem = 65536;
  found->regsPerBlock = found->regsPerMultiprocessor = target.registers_per_block;
  found->warpSize = target.warp_size;
  found->maxThreadsPerBlock = target.max_threads_per_block;
  found->maxThreadsDim[0] = target.max_block_x;
  found->maxThreadsDim[1] = target.max_block_y;
  found->maxThreadsDim[2] = target.max_block_z;
  found->maxGridSize[0] = target.max_grid_x;
  found->maxGridSize[1] = target.max_grid_y;
  found->maxGridSize[2] = target.max_grid_z;
  found->clockRate = target.clock_khz;
  found->major = target.major;
  found->minor = target.minor;
  found->multiProcessorCount = target.multiprocessors;
  found->maxThreadsPerMultiProcessor = target.max_threads_per_multiprocessor;
  found->maxBlocksPerMultiProcessor = target.max_blocks_per_multiprocessor;
  found->l2CacheSize = target.l2_bytes;
  found->cooperativeLaunch = found->concurrentKernels = found->unifiedAddressing = found->managedMemory = 1;
  found->reservedSharedMemPerBlock = 1024;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  const harness_emulator::Target& target = harness_emulator_target;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = target.max_threads_per_block; break;
    case cudaDevAttrMaxBlockDimX: *value = target.max_block_x; break;
    case cudaDevAttrMaxBlockDimY: *value = target.max_block_y; break;
    case cudaDevAttrMaxBlockDimZ: *value = target.max_block_z; break;
    case cudaDevAttrMaxGridDimX: *value = target.max_grid_x; break;
    case cudaDevAttrMaxGridDimY: *value = target.max_grid_y; break;
    case cudaDevAttrMaxGridDimZ: *value = target.max_grid_z; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = target.static_shared_bytes_per_block; break;
    case cudaDevAttrTotalConstantMemory: *value = 65536; break;
    case cudaDevAttrWarpSize: *value = target.warp_size; break;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: *value = target.registers_per_block; break;
    case cudaDevAttrClockRate: *value = target.clock_khz; break;
    case cudaDevAttrMultiProcessorCount: *value = target.multiprocessors; break;
    case cudaDevAttrL2CacheSize: *value = target.l2_bytes; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = target.max_threads_per_multiprocessor; break;
    case cudaDevAttrComputeCapabilityMajor: *value = target.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = target.minor; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = target.shared_bytes_per_multiprocessor; break;
    case cudaDevAttrCooperativeLaunch: *value = 1; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = target.max_shared_bytes_per_block; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *value = target.max_blocks_per_multiprocessor; break;
    default: return harness_emulator::answer(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

// Asked about a kernel by its function; a plain pointer stands for every kernel.
inline harness_emulator::KernelKey harness_key(const void*) { return {nullptr, "", {}}; }
template <typename... P>
harness_emulator::KernelKey harness_key(void (*kernel)(P...)) { return harness_emulator::find_key(kernel); }

template <typename F>
cudaError_t cudaFuncSetAttribute(F kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) { return cudaSuccess; }
  if (value < 0 || value > harness_emulator_target.max_shared_bytes_per_block) { return harness_emulator::answer(cudaErrorInvalidValue); }
  harness_emulator::allow_shared(harness_key(kernel).key, value);
  return cudaSuccess;
}
template <typename F>
cudaError_t cudaFuncSetCacheConfig(F, cudaFuncCache) { return cudaSuccess; }
template <typename F>
cudaError_t cudaFuncSetSharedMemConfig(F, cudaSharedMemConfig) { return cudaSuccess; }
inline cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
inline cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }
inline cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return cudaSuccess; }
template <typename F>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* found, F kernel) {
  const harness_emulator::Bounds bounds = harness_key(kernel).bounds;
  *found = cudaFuncAttributes{};
  found->maxThreadsPerBlock = bounds.threads ? bounds.threads : harness_emulator_target.max_threads_per_block;
  found->numRegs = 32;
  found->maxDynamicSharedSizeBytes = harness_emulator_target.static_shared_bytes_per_block;
  found->ptxVersion = found->binaryVersion = harness_emulator_target.major * 10 + harness_emulator_target.minor;
  return cudaSuccess;
}
template <typename F>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, F, int threads, size_t shared_bytes) {
  const harness_emulator::Target& target = harness_emulator_target;
  if (threads <= 0 || threads > target.max_threads_per_block) { return harness_emulator::answer(cudaErrorInvalidValue); }
  const size_t each = shared_bytes + 1024;
  const int by_shared = int(size_t(target.shared_bytes_per_multiprocessor) / each);
  // All blocks of a cooperative launch have their stacks at the same time, so that no more are promised than need be.
  const int affordable = std::max(65536 / (target.multiprocessors * threads), 1);
  *blocks = std::min({target.max_threads_per_multiprocessor / threads, target.max_blocks_per_multiprocessor, by_shared, affordable});
  return cudaSuccess;
}
template <typename F>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, F kernel, int threads, size_t shared_bytes, unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, shared_bytes);
}
template <typename F>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, F kernel, size_t shared_bytes = 0, int limit = 0) {
  const harness_emulator::Bounds bounds = harness_key(kernel).bounds;
  *block = bounds.threads ? bounds.threads : harness_emulator_target.max_threads_per_block;
  if (limit && *block > limit) { *block = limit; }
  int blocks = 0;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, *block, shared_bytes);
  *grid = blocks * harness_emulator_target.multiprocessors;
  return cudaSuccess;
}

template <typename Shared, typename F>
cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* grid, int* block, F kernel, Shared shared_of_threads, int limit = 0) {
  cudaOccupancyMaxPotentialBlockSize(grid, block, kernel, 0, limit);
  return cudaOccupancyMaxPotentialBlockSize(grid, block, kernel, shared_of_threads(*block), limit);
}

template <typename... P, size_t... I>
void harness_call(void (*kernel)(P...), void** arguments, std::index_sequence<I...>) {
  kernel(*static_cast<std::remove_reference_t<P>*>(arguments[I])...);
}
template <typename... P>
cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments, size_t shared_bytes = 0,
                             cudaStream_t stream = nullptr) {
  harness_emulator::configure(grid, block, shared_bytes, stream);
  harness_call(kernel, arguments, std::index_sequence_for<P...>());
  return static_cast<cudaError_t>(harness_emulator::peek_error());
}
template <typename... P>
cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments, size_t shared_bytes = 0,
                                        cudaStream_t stream = nullptr) {
  harness_emulator::configure(grid, block, shared_bytes, stream);
  harness_emulator::configure_cooperative();
  harness_call(kernel, arguments, std::index_sequence_for<P...>());
  return static_cast<cudaError_t>(harness_emulator::peek_error());
}
// Launches by a configuration; attributes other than a cooperative launch only hint at when it may begin.
enum cudaLaunchAttributeID {
  cudaLaunchAttributeIgnore = 0,
  cudaLaunchAttributeAccessPolicyWindow = 1,
  cudaLaunchAttributeCooperative = 2,
  cudaLaunchAttributeProgrammaticStreamSerialization = 6,
  cudaLaunchAttributePriority = 8
};
#include "attributes.h"
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};
template <typename... P, typename... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...), A&&... arguments) {
  harness_emulator::configure(config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream);
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if (config->attrs[i].id == cudaLaunchAttributeCooperative && config->attrs[i].val.cooperative) { harness_emulator::configure_cooperative(); }
  }
  kernel(static_cast<A&&>(arguments)...);
  return static_cast<cudaError_t>(harness_emulator::peek_error());
}
inline cudaError_t cudaDriverGetVersion(int* version) { *version = 12080; return cudaSuccess; }
inline cudaError_t cudaRuntimeGetVersion(int* version) { *version = 12080; return cudaSuccess; }
inline cudaError_t cudaProfilerStart() { return cudaSuccess; }
inline cudaError_t cudaProfilerStop() { return cudaSuccess; }
