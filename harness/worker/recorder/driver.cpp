// A forwarding CUDA driver library for worker processes. It stands in the place of libcuda.so.1 and forwards every call to the
// real driver (stubs.S). On the way it
//   - serves all device memory out of one range of addresses, so that another process can map it at the same addresses;
//   - keeps the code images of loaded modules;
//   - records the GPU work of one call as data, between harness_begin_recording and harness_end_recording.
// It runs in an untrusted process: what it writes is validated by the reader and is worth nothing before its replay gives right
// outputs. Stream 0 is the legacy default stream; functions with the suffix _ptsz or _ptds use the per-thread one.

#include <cuda.h>
#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <stdlib.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

extern "C" {
// Made by driver_library.py, with a function for each of the real driver's, in the order of their slots:
extern const char* const harness_names[];
extern void* harness_slots[];               // where the stubs jump to
extern void* const harness_stubs[];         // this library's functions
extern const unsigned char harness_is_refused[];  // whose stubs call harness_note_refused while a call is recorded
extern const unsigned harness_count;
unsigned char harness_is_recording = 0;
}

namespace {

constexpr CUdeviceptr kFirstAddress = 0x600000000000;
constexpr size_t kRangeBytes = size_t{1} << 42;
constexpr size_t kPage = size_t{2} << 20;
constexpr size_t kSmallestUnit = 512;
constexpr size_t kMostHostBytes = 4096;  // that one call copies from the host: constants, such as sizes
constexpr size_t kMostOperations = 200000;

std::recursive_mutex guard;

// ---- the real driver

void* real(const char* name) {
    static void* library = dlopen(HARNESS_REAL_DRIVER, RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, name) : nullptr;
}
template <typename Function, typename... Arguments>
CUresult call(void* function, Arguments... arguments) {
    return function ? reinterpret_cast<Function>(function)(arguments...) : CUDA_ERROR_NOT_FOUND;
}
// The prototype comes from cuda.h, the symbol from the driver: `name` is the exported one, with its version.
#define REAL(function, name, ...) \
    call<decltype(&function)>([] { static void* const found = real(name); return found; }(), ##__VA_ARGS__)

// ---- addresses and memory

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
            if (start + bytes > end) continue;
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
        return REAL(cuMemSetAccess, "cuMemSetAccess", start, bytes, &access, size_t{1});
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
        own.erase(address);
        mapped.erase(address);
        addresses.add(address, bytes);
        return CUDA_SUCCESS;
    }
} memory;

CUresult synchronize() { return REAL(cuCtxSynchronize, "cuCtxSynchronize"); }

CUresult cuMemAlloc_hook(CUdeviceptr* out, size_t bytes) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    return memory.open() ? memory.allocate(out, bytes) : REAL(cuMemAlloc, "cuMemAlloc_v2", out, bytes);
}
CUresult cuMemAllocPitch_hook(CUdeviceptr* out, size_t* pitch, size_t width, size_t height, unsigned element) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (!memory.open()) return REAL(cuMemAllocPitch, "cuMemAllocPitch_v2", out, pitch, width, height, element);
    *pitch = (width + kSmallestUnit - 1) / kSmallestUnit * kSmallestUnit;
    return memory.allocate(out, *pitch * height);
}
CUresult free_memory(CUdeviceptr address) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (!memory.owns(address)) return REAL(cuMemFree, "cuMemFree_v2", address);
    if (CUresult status = synchronize()) return status;
    return memory.release(address);
}
CUresult cuMemFree_hook(CUdeviceptr address) { return free_memory(address); }

// Allocations in the order of a stream become ordinary ones: no memory nodes in graphs, no pool that another process lacks.
int capturing = 0;  // streams

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
    if (!status) memory.mapped.erase(memory.mapped.lower_bound(address), memory.mapped.lower_bound(address + bytes));
    return status;
}

// ---- code images

struct Image {
    std::string path;  // empty: `bytes`
    size_t offset = 0, size = 0;
    std::string bytes;
    const char* mapped = nullptr;  // from the file, while its library is loaded
};
std::vector<Image> images;
std::unordered_map<void*, int> image_of;  // CUmodule or CUlibrary
std::vector<CUlibrary> libraries;
struct Named {
    void* owner;
    std::string name;
};
std::unordered_map<void*, Named> functions;     // CUfunction or CUkernel
std::unordered_map<void*, void*> kernel_of;     // CUfunction of a CUkernel
struct Global {
    void* owner;
    std::string name;
    CUdeviceptr address;
    size_t bytes;
};
std::vector<Global> globals;

size_t measure_elf(const unsigned char* data) {
    Elf64_Ehdr header;
    memcpy(&header, data, sizeof header);
    size_t end = std::max(header.e_shoff + size_t{header.e_shentsize} * header.e_shnum,
                          header.e_phoff + size_t{header.e_phentsize} * header.e_phnum);
    for (unsigned i = 0; i < header.e_shnum; ++i) {
        Elf64_Shdr section;
        memcpy(&section, data + header.e_shoff + size_t{i} * header.e_shentsize, sizeof section);
        if (section.sh_type != SHT_NOBITS) end = std::max(end, size_t(section.sh_offset + section.sh_size));
    }
    return end;
}

// Where `address` is mapped from a file: its path and the offset in it.
bool find_file(const void* address, std::string& path, size_t& offset) {
    FILE* maps = fopen("/proc/self/maps", "r");
    if (!maps) return false;
    char line[PATH_MAX + 128], name[PATH_MAX];
    bool found = false;
    while (!found && fgets(line, sizeof line, maps)) {
        unsigned long start, end, at;
        name[0] = 0;
        if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %4095[^\n]", &start, &end, &at, name) < 3) continue;
        auto wanted = reinterpret_cast<unsigned long>(address);
        if (wanted < start || wanted >= end) continue;
        const char* text = name + strspn(name, " ");
        found = text[0] == '/';
        path = text;
        offset = at + wanted - start;
        break;
    }
    fclose(maps);
    return found;
}

int keep_image(const void* code) {
    auto data = static_cast<const unsigned char*>(code);
    uint32_t magic;
    memcpy(&magic, data, 4);
    if (magic == 0x466243b1) {  // the wrapper that nvcc puts around a fat binary
        memcpy(&data, data + 8, sizeof data);
        memcpy(&magic, data, 4);
    }
    size_t size;
    if (magic == 0xBA55ED50) {
        uint16_t header;
        uint64_t body;
        memcpy(&header, data + 6, 2);
        memcpy(&body, data + 8, 8);
        size = header + body;
    } else if (!memcmp(data, ELFMAG, SELFMAG)) {
        size = measure_elf(data);
    } else {
        size = strlen(reinterpret_cast<const char*>(data)) + 1;  // PTX
    }
    Image image;
    image.size = size;
    image.mapped = reinterpret_cast<const char*>(data);
    if (!find_file(data, image.path, image.offset)) {
        image.path.clear();
        image.bytes.assign(image.mapped, size);
    }
    images.push_back(std::move(image));
    return int(images.size()) - 1;
}
int keep_image_file(const char* path) {
    char resolved[PATH_MAX];
    FILE* file = fopen(realpath(path, resolved) ? resolved : path, "rb");
    if (!file) return -1;
    Image image;
    char part[65536];
    for (size_t n; (n = fread(part, 1, sizeof part, file)) > 0;) image.bytes.append(part, n);
    fclose(file);
    image.size = image.bytes.size();
    images.push_back(std::move(image));
    return int(images.size()) - 1;
}
CUresult keep_module(CUresult status, void* owner, int image) {
    if (!status && image >= 0) image_of[owner] = image;
    return status;
}

CUresult cuModuleLoadData_hook(CUmodule* out, const void* code) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    CUresult status = REAL(cuModuleLoadData, "cuModuleLoadData", out, code);
    return status ? status : keep_module(status, *out, keep_image(code));
}
CUresult cuModuleLoadDataEx_hook(CUmodule* out, const void* code, unsigned count, CUjit_option* options, void** values) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    CUresult status = REAL(cuModuleLoadDataEx, "cuModuleLoadDataEx", out, code, count, options, values);
    return status ? status : keep_module(status, *out, keep_image(code));
}
CUresult cuModuleLoadFatBinary_hook(CUmodule* out, const void* code) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    CUresult status = REAL(cuModuleLoadFatBinary, "cuModuleLoadFatBinary", out, code);
    return status ? status : keep_module(status, *out, keep_image(code));
}
CUresult cuModuleLoad_hook(CUmodule* out, const char* path) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    CUresult status = REAL(cuModuleLoad, "cuModuleLoad", out, path);
    return status ? status : keep_module(status, *out, keep_image_file(path));
}
CUresult cuLibraryLoadData_hook(CUlibrary* out, const void* code, CUjit_option* jit, void** jit_values, unsigned jit_count,
                                CUlibraryOption* options, void** values, unsigned count) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    CUresult status = REAL(cuLibraryLoadData, "cuLibraryLoadData", out, code, jit, jit_values, jit_count, options, values, count);
    if (status) return status;
    libraries.push_back(*out);
    return keep_module(status, *out, keep_image(code));
}
CUresult cuLibraryLoadFromFile_hook(CUlibrary* out, const char* path, CUjit_option* jit, void** jit_values, unsigned jit_count,
                                    CUlibraryOption* options, void** values, unsigned count) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    CUresult status = REAL(cuLibraryLoadFromFile, "cuLibraryLoadFromFile", out, path, jit, jit_values, jit_count, options, values, count);
    if (status) return status;
    libraries.push_back(*out);
    return keep_module(status, *out, keep_image_file(path));
}
CUresult cuModuleGetFunction_hook(CUfunction* out, CUmodule module, const char* name) {
    CUresult status = REAL(cuModuleGetFunction, "cuModuleGetFunction", out, module, name);
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (!status) functions[*out] = {module, name};
    return status;
}
CUresult cuLibraryGetKernel_hook(CUkernel* out, CUlibrary library, const char* name) {
    CUresult status = REAL(cuLibraryGetKernel, "cuLibraryGetKernel", out, library, name);
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (!status) functions[*out] = {library, name};
    return status;
}
CUresult cuKernelGetFunction_hook(CUfunction* out, CUkernel kernel) {
    CUresult status = REAL(cuKernelGetFunction, "cuKernelGetFunction", out, kernel);
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (!status) kernel_of[*out] = kernel;
    return status;
}
CUresult keep_global(CUresult status, void* owner, const char* name, const CUdeviceptr* address, const size_t* bytes) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (!status && address && bytes && name) {
        auto same = [&](const Global& one) { return one.address == *address; };
        if (std::none_of(globals.begin(), globals.end(), same)) globals.push_back({owner, name, *address, *bytes});
    }
    return status;
}
CUresult cuModuleGetGlobal_hook(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
    size_t measured = 0;
    CUdeviceptr found = 0;
    CUresult status = REAL(cuModuleGetGlobal, "cuModuleGetGlobal_v2", &found, &measured, module, name);
    if (!status && address) *address = found;
    if (!status && bytes) *bytes = measured;
    return keep_global(status, module, name, &found, &measured);
}
CUresult cuLibraryGetGlobal_hook(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
    size_t measured = 0;
    CUdeviceptr found = 0;
    CUresult status = REAL(cuLibraryGetGlobal, "cuLibraryGetGlobal", &found, &measured, library, name);
    if (!status && address) *address = found;
    if (!status && bytes) *bytes = measured;
    return keep_global(status, library, name, &found, &measured);
}

// ---- the recording

std::string json_text(const std::string& text) {
    std::string out = "\"";
    for (unsigned char c : text) {
        char escaped[8];
        if (c == '"' || c == '\\') (out += '\\') += char(c);
        else if (c < 0x20 || c >= 0x7f) out.append(escaped, snprintf(escaped, sizeof escaped, "\\u%04x", c));
        else out += char(c);
    }
    return out + '"';
}
std::string hex(const void* data, size_t size) {
    static const char digits[] = "0123456789abcdef";
    std::string out(2 * size, '0');
    for (size_t i = 0; i < size; ++i) {
        unsigned char byte = static_cast<const unsigned char*>(data)[i];
        out[2 * i] = digits[byte >> 4];
        out[2 * i + 1] = digits[byte & 15];
    }
    return out;
}
std::string list(std::initializer_list<unsigned long long> numbers) {
    std::string out = "[";
    for (auto number : numbers) (out += out.size() > 1 ? "," : "") += std::to_string(number);
    return out + "]";
}

struct Recording {
    bool on = false;
    std::vector<std::string> operations, function_rows, graph_rows;
    std::unordered_map<void*, int> function_rows_of, event_ids;
    std::map<void*, int> streams;
    std::set<int> used_images;
    std::string blob;  // data that operations, globals and images refer to
    size_t host_bytes = 0;
    std::set<std::string> unsupported;
} recording;

bool is_recording() { return recording.on; }

void add(std::string row) {
    if (recording.operations.size() >= kMostOperations) recording.unsupported.insert("more than 200000 operations in one call");
    else recording.operations.push_back(std::move(row));
}
void refuse(const std::string& reason) {
    if (recording.on) recording.unsupported.insert(reason);
}

CUstream plain_stream(CUstream stream, bool thread) {
    if (stream == CU_STREAM_LEGACY) return nullptr;
    return stream == nullptr && thread ? CU_STREAM_PER_THREAD : stream;
}
// A stream that is being captured does not run what it is given; the graph is recorded when it is launched.
bool is_captured(CUstream stream, bool thread) {
    if (!capturing) return false;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return !REAL(cuStreamIsCapturing, "cuStreamIsCapturing", plain_stream(stream, thread), &status) && status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}
int stream_id(CUstream stream, bool thread) {
    CUstream plain = plain_stream(stream, thread);
    return recording.streams.emplace(plain, int(recording.streams.size())).first->second;
}
bool records(CUstream stream, bool thread) { return is_recording() && !is_captured(stream, thread); }

int attribute(CUfunction function, CUfunction_attribute kind) {
    int value = 0;
    return REAL(cuFuncGetAttribute, "cuFuncGetAttribute", &value, kind, function) ? 0 : value;
}

int find_image(void* handle, CUfunction function, std::string& name) {
    auto kernel = kernel_of.find(handle);
    auto known = functions.find(kernel == kernel_of.end() ? handle : kernel->second);
    if (known != functions.end()) {
        name = known->second.name;
        auto image = image_of.find(known->second.owner);
        return image == image_of.end() ? -1 : image->second;
    }
    const char* text = nullptr;
    CUmodule module = nullptr;
    if (REAL(cuFuncGetName, "cuFuncGetName", &text, function) || !text) return -1;
    name = text;
    if (REAL(cuFuncGetModule, "cuFuncGetModule", &module, function)) return -1;
    auto image = image_of.find(module);
    if (image != image_of.end()) return image->second;
    for (CUlibrary library : libraries) {
        CUmodule own = nullptr;
        if (!REAL(cuLibraryGetModule, "cuLibraryGetModule", &own, library) && own == module) return image_of[module] = image_of[library];
    }
    return -1;
}

struct FunctionFacts {
    int row;
    std::vector<std::pair<size_t, size_t>> parameters;  // offset, size
    size_t bytes;
};
std::unordered_map<void*, FunctionFacts> facts_of;

const FunctionFacts& describe_function(void* handle) {
    auto known = facts_of.find(handle);
    if (known != facts_of.end()) return known->second;
    auto function = static_cast<CUfunction>(handle);
    CUfunction resolved = nullptr;  // a CUkernel may be launched as it is
    if (functions.count(handle) && libraries.end() != std::find(libraries.begin(), libraries.end(), functions[handle].owner) &&
        !REAL(cuKernelGetFunction, "cuKernelGetFunction", &resolved, static_cast<CUkernel>(handle)))
        function = resolved;
    FunctionFacts facts{int(recording.function_rows.size()), {}, 0};
    size_t offset, size;
    while (!REAL(cuFuncGetParamInfo, "cuFuncGetParamInfo", function, facts.parameters.size(), &offset, &size)) {
        facts.parameters.emplace_back(offset, size);
        facts.bytes = std::max(facts.bytes, offset + size);
    }
    std::string name, shape;
    int image = find_image(handle, function, name);
    if (image >= 0) recording.used_images.insert(image);
    for (auto& [at, bytes] : facts.parameters) (shape += shape.empty() ? "" : ",") += list({at, bytes});
    recording.function_rows.push_back(
        "{\"image\":" + std::to_string(image) + ",\"name\":" + json_text(name) + ",\"parameters\":[" + shape + "],\"dynamic_shared\":" +
        std::to_string(attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)) + ",\"carveout\":" +
        std::to_string(attribute(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)) + ",\"non_portable_cluster\":" +
        std::to_string(attribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED)) + "}");
    return facts_of[handle] = facts;
}

std::string pack_arguments(const FunctionFacts& facts, void** parameters, void** extra) {
    std::string packed(facts.bytes, '\0');
    if (parameters) {
        for (size_t i = 0; i < facts.parameters.size(); ++i) memcpy(&packed[facts.parameters[i].first], parameters[i], facts.parameters[i].second);
    } else if (extra) {
        const void* buffer = nullptr;
        size_t size = 0;
        for (void** at = extra; *at != CU_LAUNCH_PARAM_END; at += 2) {
            if (*at == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = at[1];
            else if (*at == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *static_cast<size_t*>(at[1]);
        }
        if (buffer) memcpy(packed.data(), buffer, std::min(size, packed.size()));
    }
    return hex(packed.data(), packed.size());
}

struct Launch {
    void* function;
    unsigned grid[3], block[3], shared;
    void **parameters, **extra;
    const CUlaunchAttribute* attributes;
    unsigned attribute_count;
};
std::string describe_launch(const Launch& one, int stream) {
    const FunctionFacts& facts = describe_function(one.function);
    std::string attributes;
    for (unsigned i = 0; i < one.attribute_count; ++i) {
        const auto& each = one.attributes[i];
        if (each.id == CU_LAUNCH_ATTRIBUTE_IGNORE) continue;
        (attributes += attributes.empty() ? "" : ",") += "[" + std::to_string(each.id) + ",\"" + hex(&each.value, sizeof each.value) + "\"]";
    }
    return "[\"launch\"," + std::to_string(stream) + "," + std::to_string(facts.row) + "," + list({one.grid[0], one.grid[1], one.grid[2]}) + "," +
           list({one.block[0], one.block[1], one.block[2]}) + "," + std::to_string(one.shared) + ",\"" +
           pack_arguments(facts, one.parameters, one.extra) + "\",[" + attributes + "]]";
}

template <bool thread>
CUresult cuLaunchKernel_hook(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                             CUstream stream, void** parameters, void** extra) {
    CUresult status = REAL(cuLaunchKernel, thread ? "cuLaunchKernel_ptsz" : "cuLaunchKernel", function, gx, gy, gz, bx, by, bz, shared, stream,
                           parameters, extra);
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (!status && records(stream, thread))
        add(describe_launch({function, {gx, gy, gz}, {bx, by, bz}, shared, parameters, extra, nullptr, 0}, stream_id(stream, thread)));
    return status;
}
template <bool thread>
CUresult cuLaunchKernelEx_hook(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
    CUresult status = REAL(cuLaunchKernelEx, thread ? "cuLaunchKernelEx_ptsz" : "cuLaunchKernelEx", config, function, parameters, extra);
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (!status && records(config->hStream, thread))
        add(describe_launch({function,
                             {config->gridDimX, config->gridDimY, config->gridDimZ},
                             {config->blockDimX, config->blockDimY, config->blockDimZ},
                             config->sharedMemBytes, parameters, extra, config->attrs, config->numAttrs},
                            stream_id(config->hStream, thread)));
    return status;
}
template <bool thread>
CUresult cuLaunchCooperativeKernel_hook(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                        unsigned shared, CUstream stream, void** parameters) {
    CUresult status = REAL(cuLaunchCooperativeKernel, thread ? "cuLaunchCooperativeKernel_ptsz" : "cuLaunchCooperativeKernel", function, gx, gy, gz,
                           bx, by, bz, shared, stream, parameters);
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (!status && records(stream, thread)) {
        CUlaunchAttribute cooperative = {};
        cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        cooperative.value.cooperative = 1;
        add(describe_launch({function, {gx, gy, gz}, {bx, by, bz}, shared, parameters, nullptr, &cooperative, 1}, stream_id(stream, thread)));
    }
    return status;
}

// ---- copies and sets

bool is_device(CUdeviceptr address) {
    if (Memory::contains(address)) return true;
    unsigned kind = 0;
    CUresult status = REAL(cuPointerGetAttribute, "cuPointerGetAttribute", static_cast<void*>(&kind), CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    return !status && kind == CU_MEMORYTYPE_DEVICE;
}
void record_copy(CUdeviceptr target, CUdeviceptr source, size_t bytes, int stream) {
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
    }
}
// Recorded before the call, since the host may change its memory afterwards.
#define COPY(hook, function, symbol, thread_symbol, target, source, bytes, stream, parameters, ...)                \
    template <bool thread>                                                                                          \
    CUresult hook parameters {                                                                                      \
        std::unique_lock<std::recursive_mutex> lock(guard);                                                         \
        bool wanted = records(stream, thread);                                                                      \
        size_t before = recording.operations.size();                                                                \
        if (wanted) record_copy(CUdeviceptr(target), CUdeviceptr(source), bytes, stream_id(stream, thread));        \
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

// ---- order

template <bool thread>
CUresult cuEventRecord_hook(CUevent event, CUstream stream) {
    CUresult status = REAL(cuEventRecord, thread ? "cuEventRecord_ptsz" : "cuEventRecord", event, stream);
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (!status && records(stream, thread))
        add("[\"record\"," + std::to_string(stream_id(stream, thread)) + "," +
            std::to_string(recording.event_ids.emplace(event, int(recording.event_ids.size())).first->second) + "]");
    return status;
}
template <bool thread>
CUresult cuEventRecordWithFlags_hook(CUevent event, CUstream stream, unsigned flags) {
    CUresult status = REAL(cuEventRecordWithFlags, thread ? "cuEventRecordWithFlags_ptsz" : "cuEventRecordWithFlags", event, stream, flags);
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (!status && records(stream, thread))
        add("[\"record\"," + std::to_string(stream_id(stream, thread)) + "," +
            std::to_string(recording.event_ids.emplace(event, int(recording.event_ids.size())).first->second) + "]");
    return status;
}
template <bool thread>
CUresult cuStreamWaitEvent_hook(CUstream stream, CUevent event, unsigned flags) {
    CUresult status = REAL(cuStreamWaitEvent, thread ? "cuStreamWaitEvent_ptsz" : "cuStreamWaitEvent", stream, event, flags);
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (!status && records(stream, thread) && recording.event_ids.count(event))  // else recorded before this call
        add("[\"wait\"," + std::to_string(stream_id(stream, thread)) + "," + std::to_string(recording.event_ids[event]) + "]");
    return status;
}
void record_synchronization() {
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (is_recording() && !recording.operations.empty() && recording.operations.back() != "[\"sync\"]") add("[\"sync\"]");
}
template <bool thread>
CUresult cuStreamSynchronize_hook(CUstream stream) {
    record_synchronization();
    return REAL(cuStreamSynchronize, thread ? "cuStreamSynchronize_ptsz" : "cuStreamSynchronize", stream);
}
CUresult cuCtxSynchronize_hook() {
    record_synchronization();
    return synchronize();
}
CUresult cuCtxSynchronize_v2_hook(CUcontext context) {
    record_synchronization();
    auto function = reinterpret_cast<CUresult (*)(CUcontext)>(real("cuCtxSynchronize_v2"));
    return function(context);
}
CUresult cuEventSynchronize_hook(CUevent event) {
    record_synchronization();
    return REAL(cuEventSynchronize, "cuEventSynchronize", event);
}
template <bool thread>
CUresult cuStreamBeginCapture_hook(CUstream stream, CUstreamCaptureMode mode) {
    CUresult status = REAL(cuStreamBeginCapture, thread ? "cuStreamBeginCapture_v2_ptsz" : "cuStreamBeginCapture_v2", stream, mode);
    std::lock_guard<std::recursive_mutex> lock(guard);
    capturing += !status;
    return status;
}
template <bool thread>
CUresult cuStreamBeginCaptureToGraph_hook(CUstream stream, CUgraph graph, const CUgraphNode* nodes, const CUgraphEdgeData* edges, size_t count,
                                          CUstreamCaptureMode mode) {
    CUresult status = REAL(cuStreamBeginCaptureToGraph, thread ? "cuStreamBeginCaptureToGraph_ptsz" : "cuStreamBeginCaptureToGraph", stream, graph,
                           nodes, edges, count, mode);
    std::lock_guard<std::recursive_mutex> lock(guard);
    capturing += !status;
    return status;
}
template <bool thread>
CUresult cuStreamEndCapture_hook(CUstream stream, CUgraph* out) {
    CUresult status = REAL(cuStreamEndCapture, thread ? "cuStreamEndCapture_ptsz" : "cuStreamEndCapture", stream, out);
    std::lock_guard<std::recursive_mutex> lock(guard);
    capturing = std::max(0, capturing - 1);
    return status;
}

// ---- graphs of the program itself

std::unordered_map<void*, CUgraph> graph_of;  // a copy of what an executable graph was made from

CUresult keep_graph(CUresult status, CUgraphExec executable, CUgraph graph) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    CUgraph copy = nullptr;
    if (!status) graph_of[executable] = REAL(cuGraphClone, "cuGraphClone", &copy, graph) ? nullptr : copy;
    return status;
}
CUresult cuGraphInstantiateWithFlags_hook(CUgraphExec* out, CUgraph graph, unsigned long long flags) {
    CUresult status = REAL(cuGraphInstantiate, "cuGraphInstantiateWithFlags", out, graph, flags);
    return status ? status : keep_graph(status, *out, graph);
}
template <bool thread>
CUresult cuGraphInstantiateWithParams_hook(CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
    CUresult status = REAL(cuGraphInstantiateWithParams, thread ? "cuGraphInstantiateWithParams_ptsz" : "cuGraphInstantiateWithParams", out, graph,
                           parameters);
    return status ? status : keep_graph(status, *out, graph);
}
CUresult instantiate_with_log(const char* name, CUgraphExec* out, CUgraph graph, CUgraphNode* node, char* log, size_t size) {
    auto function = reinterpret_cast<CUresult (*)(CUgraphExec*, CUgraph, CUgraphNode*, char*, size_t)>(real(name));
    CUresult status = function(out, graph, node, log, size);
    return status ? status : keep_graph(status, *out, graph);
}
CUresult cuGraphInstantiate_hook(CUgraphExec* out, CUgraph graph, CUgraphNode* node, char* log, size_t size) {
    return instantiate_with_log("cuGraphInstantiate", out, graph, node, log, size);
}
CUresult cuGraphInstantiate_v2_hook(CUgraphExec* out, CUgraph graph, CUgraphNode* node, char* log, size_t size) {
    return instantiate_with_log("cuGraphInstantiate_v2", out, graph, node, log, size);
}
CUresult cuGraphExecUpdate_hook(CUgraphExec executable, CUgraph graph, CUgraphExecUpdateResultInfo* result) {
    return keep_graph(REAL(cuGraphExecUpdate, "cuGraphExecUpdate_v2", executable, graph, result), executable, graph);
}
CUresult forget_graph(CUresult status, CUgraphExec executable) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (!status) graph_of[executable] = nullptr;
    return status;
}
CUresult cuGraphExecKernelNodeSetParams_hook(CUgraphExec executable, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters) {
    return forget_graph(REAL(cuGraphExecKernelNodeSetParams, "cuGraphExecKernelNodeSetParams_v2", executable, node, parameters), executable);
}
CUresult cuGraphExecNodeSetParams_hook(CUgraphExec executable, CUgraphNode node, CUgraphNodeParams* parameters) {
    return forget_graph(REAL(cuGraphExecNodeSetParams, "cuGraphExecNodeSetParams", executable, node, parameters), executable);
}

std::string describe_kernel_node(CUgraphNode node) {
    CUDA_KERNEL_NODE_PARAMS parameters = {};
    if (REAL(cuGraphKernelNodeGetParams, "cuGraphKernelNodeGetParams_v2", node, &parameters)) return "";
    std::vector<CUlaunchAttribute> attributes;
    for (int id : {CU_LAUNCH_ATTRIBUTE_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_PRIORITY,
                   CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE}) {
        CUlaunchAttribute one = {};
        one.id = CUlaunchAttributeID(id);
        if (!REAL(cuGraphKernelNodeGetAttribute, "cuGraphKernelNodeGetAttribute", node, one.id, &one.value)) attributes.push_back(one);
    }
    void* function = parameters.func ? static_cast<void*>(parameters.func) : static_cast<void*>(parameters.kern);
    return describe_launch({function,
                            {parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ},
                            {parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ},
                            parameters.sharedMemBytes, parameters.kernelParams, parameters.extra, attributes.data(), unsigned(attributes.size())}, 0);
}
int describe_graph(CUgraph graph);
std::string describe_node(CUgraphNode node) {
    CUgraphNodeType kind;
    if (REAL(cuGraphNodeGetType, "cuGraphNodeGetType", node, &kind)) return "";
    if (kind == CU_GRAPH_NODE_TYPE_KERNEL) return describe_kernel_node(node);
    if (kind == CU_GRAPH_NODE_TYPE_EMPTY) return "[\"empty\"]";
    if (kind == CU_GRAPH_NODE_TYPE_MEMSET) {
        CUDA_MEMSET_NODE_PARAMS set = {};
        if (REAL(cuGraphMemsetNodeGetParams, "cuGraphMemsetNodeGetParams", node, &set)) return "";
        return "[\"set\",0," + std::to_string(set.dst) + "," + std::to_string(set.pitch) + "," + std::to_string(set.elementSize) + "," +
               std::to_string(set.value) + "," + std::to_string(set.width) + "," + std::to_string(set.height) + "]";
    }
    if (kind == CU_GRAPH_NODE_TYPE_MEMCPY) {
        CUDA_MEMCPY3D copy = {};
        if (REAL(cuGraphMemcpyNodeGetParams, "cuGraphMemcpyNodeGetParams", node, &copy)) return "";
        auto on_device = [](CUmemorytype where, CUdeviceptr address) {
            return where == CU_MEMORYTYPE_DEVICE || (where == CU_MEMORYTYPE_UNIFIED && is_device(address));
        };
        if (on_device(copy.srcMemoryType, copy.srcDevice) && on_device(copy.dstMemoryType, copy.dstDevice))
            return "[\"copy3d\",0,\"" + hex(&copy, sizeof copy) + "\"]";
        refuse("a graph copies host memory");
        return "";
    }
    if (kind == CU_GRAPH_NODE_TYPE_GRAPH) {
        CUgraph child = nullptr;
        if (REAL(cuGraphChildGraphNodeGetGraph, "cuGraphChildGraphNodeGetGraph", node, &child)) return "";
        return "[\"graph\",0," + std::to_string(describe_graph(child)) + "]";
    }
    refuse("a graph has a node of kind " + std::to_string(int(kind)));
    return "";
}
int describe_graph(CUgraph graph) {
    size_t count = 0, edge_count = 0;
    REAL(cuGraphGetNodes, "cuGraphGetNodes", graph, static_cast<CUgraphNode*>(nullptr), &count);
    if (count > kMostOperations) {
        refuse("a graph of more than 200000 nodes");
        return -1;
    }
    std::vector<CUgraphNode> nodes(count);
    REAL(cuGraphGetNodes, "cuGraphGetNodes", graph, nodes.data(), &count);
    std::unordered_map<void*, size_t> place;
    std::string rows, edges;
    for (size_t i = 0; i < count; ++i) {
        place[nodes[i]] = i;
        std::string row = describe_node(nodes[i]);
        if (row.empty()) refuse("a node of a graph could not be read");
        (rows += i ? "," : "") += row.empty() ? "[\"empty\"]" : row;
    }
    CUgraphNode *none = nullptr;
    REAL(cuGraphGetEdges, "cuGraphGetEdges_v2", graph, none, none, static_cast<CUgraphEdgeData*>(nullptr), &edge_count);
    std::vector<CUgraphNode> from(edge_count), to(edge_count);
    std::vector<CUgraphEdgeData> data(edge_count);
    if (edge_count) REAL(cuGraphGetEdges, "cuGraphGetEdges_v2", graph, from.data(), to.data(), data.data(), &edge_count);
    for (size_t i = 0; i < edge_count; ++i)
        (edges += i ? "," : "") += list({place[from[i]], place[to[i]], data[i].from_port, data[i].to_port, data[i].type});
    recording.graph_rows.push_back("{\"nodes\":[" + rows + "],\"edges\":[" + edges + "]}");
    return int(recording.graph_rows.size()) - 1;
}
std::unordered_map<void*, int> graph_ids;  // of this recording, by executable graph

template <bool thread>
CUresult cuGraphLaunch_hook(CUgraphExec executable, CUstream stream) {
    CUresult status = REAL(cuGraphLaunch, thread ? "cuGraphLaunch_ptsz" : "cuGraphLaunch", executable, stream);
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (status || !records(stream, thread)) return status;
    CUgraph graph = graph_of.count(executable) ? graph_of[executable] : nullptr;
    if (!graph) {
        refuse("a graph that cannot be read, such as one with memory nodes or changed parameters");
        return status;
    }
    if (!graph_ids.count(executable)) graph_ids[executable] = describe_graph(graph);
    add("[\"graph\"," + std::to_string(stream_id(stream, thread)) + "," + std::to_string(graph_ids[executable]) + "]");
    return status;
}

// ---- the functions of this library

struct Hook {
    const char* name;
    void* function;
};
#define HOOK(name, function) {name, reinterpret_cast<void*>(function)}
#define BOTH(name, suffix, function) HOOK(name, function<false>), HOOK(name suffix, function<true>)

const Hook hooks[] = {
    HOOK("cuMemAlloc_v2", cuMemAlloc_hook), HOOK("cuMemAllocPitch_v2", cuMemAllocPitch_hook), HOOK("cuMemFree_v2", cuMemFree_hook),
    BOTH("cuMemAllocAsync", "_ptsz", cuMemAllocAsync_hook), BOTH("cuMemAllocFromPoolAsync", "_ptsz", cuMemAllocFromPoolAsync_hook),
    BOTH("cuMemFreeAsync", "_ptsz", cuMemFreeAsync_hook), HOOK("cuMemAddressReserve", cuMemAddressReserve_hook),
    HOOK("cuMemAddressFree", cuMemAddressFree_hook), HOOK("cuMemCreate", cuMemCreate_hook), HOOK("cuMemMap", cuMemMap_hook),
    HOOK("cuMemUnmap", cuMemUnmap_hook), HOOK("cuModuleLoadData", cuModuleLoadData_hook), HOOK("cuModuleLoadDataEx", cuModuleLoadDataEx_hook),
    HOOK("cuModuleLoadFatBinary", cuModuleLoadFatBinary_hook), HOOK("cuModuleLoad", cuModuleLoad_hook),
    HOOK("cuLibraryLoadData", cuLibraryLoadData_hook), HOOK("cuLibraryLoadFromFile", cuLibraryLoadFromFile_hook),
    HOOK("cuModuleGetFunction", cuModuleGetFunction_hook), HOOK("cuLibraryGetKernel", cuLibraryGetKernel_hook),
    HOOK("cuKernelGetFunction", cuKernelGetFunction_hook), HOOK("cuModuleGetGlobal_v2", cuModuleGetGlobal_hook),
    HOOK("cuLibraryGetGlobal", cuLibraryGetGlobal_hook), BOTH("cuLaunchKernel", "_ptsz", cuLaunchKernel_hook),
    BOTH("cuLaunchKernelEx", "_ptsz", cuLaunchKernelEx_hook), BOTH("cuLaunchCooperativeKernel", "_ptsz", cuLaunchCooperativeKernel_hook),
    BOTH("cuMemcpy", "_ptds", copy_hook), BOTH("cuMemcpyAsync", "_ptsz", copy_async_hook), BOTH("cuMemcpyHtoD_v2", "_ptds", h2d_hook),
    BOTH("cuMemcpyHtoDAsync_v2", "_ptsz", h2d_async_hook), BOTH("cuMemcpyDtoH_v2", "_ptds", d2h_hook),
    BOTH("cuMemcpyDtoHAsync_v2", "_ptsz", d2h_async_hook), BOTH("cuMemcpyDtoD_v2", "_ptds", d2d_hook),
    BOTH("cuMemcpyDtoDAsync_v2", "_ptsz", d2d_async_hook), BOTH("cuMemsetD8_v2", "_ptds", set8), BOTH("cuMemsetD16_v2", "_ptds", set16),
    BOTH("cuMemsetD32_v2", "_ptds", set32), BOTH("cuMemsetD8Async", "_ptsz", set8_async), BOTH("cuMemsetD16Async", "_ptsz", set16_async),
    BOTH("cuMemsetD32Async", "_ptsz", set32_async), BOTH("cuMemsetD2D8Async", "_ptsz", set2d8_async),
    BOTH("cuMemsetD2D32Async", "_ptsz", set2d32_async), BOTH("cuMemcpy2DAsync_v2", "_ptsz", copy2d_async_hook),
    BOTH("cuEventRecord", "_ptsz", cuEventRecord_hook), BOTH("cuEventRecordWithFlags", "_ptsz", cuEventRecordWithFlags_hook),
    BOTH("cuStreamWaitEvent", "_ptsz", cuStreamWaitEvent_hook), BOTH("cuStreamSynchronize", "_ptsz", cuStreamSynchronize_hook),
    HOOK("cuCtxSynchronize", cuCtxSynchronize_hook), HOOK("cuCtxSynchronize_v2", cuCtxSynchronize_v2_hook), HOOK("cuEventSynchronize", cuEventSynchronize_hook),
    BOTH("cuStreamBeginCapture_v2", "_ptsz", cuStreamBeginCapture_hook), BOTH("cuStreamBeginCaptureToGraph", "_ptsz", cuStreamBeginCaptureToGraph_hook),
    BOTH("cuStreamEndCapture", "_ptsz", cuStreamEndCapture_hook), HOOK("cuGraphInstantiate", cuGraphInstantiate_hook),
    HOOK("cuGraphInstantiate_v2", cuGraphInstantiate_v2_hook), HOOK("cuGraphInstantiateWithFlags", cuGraphInstantiateWithFlags_hook),
    BOTH("cuGraphInstantiateWithParams", "_ptsz", cuGraphInstantiateWithParams_hook), HOOK("cuGraphExecUpdate_v2", cuGraphExecUpdate_hook),
    HOOK("cuGraphExecKernelNodeSetParams_v2", cuGraphExecKernelNodeSetParams_hook), HOOK("cuGraphExecNodeSetParams", cuGraphExecNodeSetParams_hook),
    BOTH("cuGraphLaunch", "_ptsz", cuGraphLaunch_hook),
};

std::unordered_map<void*, void*>& replacements() {  // of the real driver's functions
    static std::unordered_map<void*, void*> all;
    return all;
}
CUresult replace(CUresult status, void** out) {
    if (status || !out || !*out) return status;
    std::lock_guard<std::recursive_mutex> lock(guard);
    auto found = replacements().find(*out);
    if (found != replacements().end()) *out = found->second;
    return status;
}
CUresult get_address_v1(const char* symbol, void** out, int version, cuuint64_t flags) {
    auto function = reinterpret_cast<CUresult (*)(const char*, void**, int, cuuint64_t)>(real("cuGetProcAddress"));
    return replace(function(symbol, out, version, flags), out);
}
CUresult get_address_v2(const char* symbol, void** out, int version, cuuint64_t flags, CUdriverProcAddressQueryResult* result) {
    return replace(REAL(cuGetProcAddress, "cuGetProcAddress_v2", symbol, out, version, flags, result), out);
}
CUresult get_address_v2_ptsz(const char* symbol, void** out, int version, cuuint64_t flags, CUdriverProcAddressQueryResult* result) {
    return replace(REAL(cuGetProcAddress, "cuGetProcAddress_v2_ptsz", symbol, out, version, flags, result), out);
}

}  // namespace

// Of functions that put work on the device, or change it, in ways that a recording does not hold.
extern "C" void harness_note_refused(unsigned slot) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    refuse(std::string("the call ") + harness_names[slot] + " is not recorded");
}

__attribute__((constructor)) static void fill_slots() {
    std::unordered_map<std::string, void*> own;
    for (const Hook& hook : hooks) own[hook.name] = hook.function;
    own["cuGetProcAddress"] = reinterpret_cast<void*>(get_address_v1);
    own["cuGetProcAddress_v2"] = reinterpret_cast<void*>(get_address_v2);
    own["cuGetProcAddress_v2_ptsz"] = reinterpret_cast<void*>(get_address_v2_ptsz);
    for (unsigned i = 0; i < harness_count; ++i) {
        void* target = real(harness_names[i]);
        auto hook = own.find(harness_names[i]);
        harness_slots[i] = hook == own.end() ? target : hook->second;
        if (target && hook != own.end()) replacements()[target] = hook->second;
        else if (target && harness_is_refused[i]) replacements()[target] = harness_stubs[i];
    }
}

static bool write_all(int descriptor, const std::string& text) {
    for (size_t done = 0; done < text.size();) {
        ssize_t written = write(descriptor, text.data() + done, text.size() - done);
        if (written <= 0) return false;
        done += size_t(written);
    }
    return true;
}

#pragma GCC visibility push(default)
extern "C" {
// A function of the real driver, which this library does not see.
void* harness_real(const char* name) { return real(name); }

void harness_begin_recording() {
    std::lock_guard<std::recursive_mutex> lock(guard);
    recording = Recording{};
    facts_of.clear();
    graph_ids.clear();
    recording.on = true;
    harness_is_recording = 1;
}

// Ends the recording and writes it: a JSON object, and the bytes that it refers to. Code from files in `private_folder`, which
// another process cannot read, is among these bytes. 0, or 1 if they cannot be written.
int harness_end_recording(int descriptor, int blob_descriptor, const char* private_folder) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    recording.on = false;
    harness_is_recording = 0;
    synchronize();
    std::string out = "{\"operations\":[";
    auto append_all = [&](const std::vector<std::string>& rows) {
        for (size_t i = 0; i < rows.size(); ++i) (out += i ? ",\n" : "\n") += rows[i];
        out += "]";
    };
    append_all(recording.operations);
    out += ",\"functions\":[";
    append_all(recording.function_rows);
    out += ",\"graphs\":[";
    append_all(recording.graph_rows);
    out += ",\"images\":{";
    bool first = true;
    for (int id : recording.used_images) {
        const Image& image = images[id];
        bool is_private = !image.path.compare(0, strlen(private_folder), private_folder);
        bool is_copied = image.path.empty() || is_private || image.path.find(" (deleted)") != std::string::npos;
        size_t offset = is_copied ? recording.blob.size() : image.offset;
        (out += first ? "" : ",") += "\"" + std::to_string(id) + "\":{\"path\":" + json_text(is_copied ? "" : image.path) + ",\"offset\":" +
                                     std::to_string(offset) + ",\"size\":" + std::to_string(image.size) + "}";
        first = false;
        if (is_copied) recording.blob.append(image.bytes.empty() ? image.mapped : image.bytes.data(), image.size);
    }
    out += "},\"globals\":[";
    first = true;
    for (const Global& one : globals) {
        auto image = image_of.find(one.owner);
        if (image == image_of.end() || !recording.used_images.count(image->second)) continue;
        std::string bytes(one.bytes, '\0');
        if (REAL(cuMemcpyDtoH, "cuMemcpyDtoH_v2", bytes.data(), one.address, one.bytes)) continue;
        (out += first ? "" : ",") += "{\"image\":" + std::to_string(image->second) + ",\"name\":" + json_text(one.name) + ",\"address\":" +
                                     std::to_string(one.address) + ",\"offset\":" + std::to_string(recording.blob.size()) + ",\"size\":" +
                                     std::to_string(one.bytes) + "}";
        first = false;
        recording.blob += bytes;
    }
    out += "],\"streams\":[";
    std::vector<std::string> streams(recording.streams.size());
    for (auto& [handle, id] : recording.streams) {
        unsigned flags = 0;
        int priority = 0;
        auto stream = static_cast<CUstream>(handle);
        if (stream && stream != CU_STREAM_PER_THREAD) {
            REAL(cuStreamGetFlags, "cuStreamGetFlags", stream, &flags);
            REAL(cuStreamGetPriority, "cuStreamGetPriority", stream, &priority);
        }
        streams[id] = "{\"legacy\":" + std::string(stream ? "false" : "true") + ",\"blocking\":" + (flags & CU_STREAM_NON_BLOCKING ? "false" : "true") +
                      ",\"priority\":" + std::to_string(priority) + "}";
    }
    append_all(streams);
    out += ",\"memory\":[";
    first = true;
    for (auto& [address, bytes] : memory.mapped) {
        (out += first ? "" : ",") += list({address, bytes});
        first = false;
    }
    out += "],\"unsupported\":[";
    first = true;
    for (const auto& reason : recording.unsupported) {
        (out += first ? "" : ",") += json_text(reason);
        first = false;
    }
    out += std::string("],\"has_fixed_addresses\":") + (memory.available ? "true" : "false") + "}";
    return !write_all(descriptor, out) || !write_all(blob_descriptor, recording.blob);
}
}
#pragma GCC visibility pop
