// Calls of the real driver.

#pragma once

#include <cuda.h>
#include <dlfcn.h>
#include <stddef.h>

#include <mutex>

namespace {

std::recursive_mutex guard;

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

CUresult synchronize() { return REAL(cuCtxSynchronize, "cuCtxSynchronize"); }

}  // namespace
