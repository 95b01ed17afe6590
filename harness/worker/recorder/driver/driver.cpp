// A forwarding CUDA driver library for worker processes. It stands in the place of libcuda.so.1 and forwards every call to the
// real driver (stubs.S). On the way it
//   - serves all device memory out of one range of addresses, so that another process can map it at the same addresses;
//   - keeps the code images of loaded modules;
//   - records the GPU work of one call as data, between harness_begin_recording and harness_end_recording.
// It runs in an untrusted process: what it writes is validated by the reader and is worth nothing before its replay gives right
// outputs. Stream 0 is the legacy default stream; functions with the suffix _ptsz or _ptds use the per-thread one.

#include <stdint.h>
#include <unistd.h>

#include "graphs.h"
#include "memory.h"
#include "order.h"

extern "C" {
// Made by driver_library.py, with a function for each of the real driver's, in the order of their slots:
extern const char* const harness_names[];
extern void* harness_slots[];               // where the stubs jump to
extern void* const harness_stubs[];         // this library's functions
extern const unsigned char harness_kinds[];  // whose stubs call harness_note: see Kind
extern const unsigned harness_count;
unsigned char harness_is_recording = 0;
}

namespace {

enum Kind { kOther, kWork, kGraphChange };  // work is noted while a call is recorded, changes always
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

// A call of a function that has no hook, and puts work on the device or changes an executable graph, its first argument.
extern "C" void harness_note(unsigned slot, void* first) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (harness_slots[slot] != real(harness_names[slot])) return;
    if (harness_kinds[slot] == kGraphChange) graph_of[first] = nullptr;
    else refuse(std::string("the call ") + harness_names[slot] + " is not recorded");
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
        else if (target && harness_kinds[i]) replacements()[target] = harness_stubs[i];
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

// Bytes of device memory that were unmapped so far.
unsigned long long harness_unmapped_bytes() {
    std::lock_guard<std::recursive_mutex> lock(guard);
    return memory.unmapped_bytes;
}

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
    for (auto& [handle, facts] : recording.streams)
        streams[facts.id] = "{\"legacy\":" + std::string(handle ? "false" : "true") + ",\"blocking\":" +
                            (facts.flags & CU_STREAM_NON_BLOCKING ? "false" : "true") + ",\"priority\":" + std::to_string(facts.priority) + "}";
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
