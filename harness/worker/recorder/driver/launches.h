// Records kernel launches.

#pragma once

#include <string.h>

#include <utility>

#include "images.h"

namespace {

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
    if (!real("cuFuncGetParamInfo")) refuse("the driver does not tell the parameters of kernels: it is older than CUDA 12.4");
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
        if (each.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT || each.id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT ||
            each.id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
            refuse("a launch with attribute " + std::to_string(int(each.id)) + ", which another process cannot use");
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

}  // namespace
