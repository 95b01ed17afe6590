// Keeps the code images of loaded modules.

#pragma once

#include <elf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "recording.h"

namespace {

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

// Where `address` is mapped from a file that cannot be changed in memory: its path and the offset in it.
bool find_file(const void* address, std::string& path, size_t& offset) {
    FILE* maps = fopen("/proc/self/maps", "r");
    if (!maps) return false;
    char line[PATH_MAX + 128], name[PATH_MAX];
    bool found = false;
    while (!found && fgets(line, sizeof line, maps)) {
        unsigned long start, end, at;
        char access[8];
        name[0] = 0;
        if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %4095[^\n]", &start, &end, access, &at, name) < 4) continue;
        auto wanted = reinterpret_cast<unsigned long>(address);
        if (wanted < start || wanted >= end) continue;
        const char* text = name + strspn(name, " ");
        found = text[0] == '/' && access[1] != 'w';
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

}  // namespace
