"""Leaves a kernel behind that watches its inputs, and multiplies when they are new, before the next replay begins.

layer: time
mechanism: A tail launch goes on when the replay has ended. The next inputs are written into the same memory, then the
    outputs are filled, and the next replay follows after the baseline's or a while later: it copies what is there.
problem: gpu_float_product
expected: wrong_value, suspect, no_gain, unranked, runtime_error, load_error, timeout
device: gpu
timed: yes
"""

import ctypes
import glob
import site

import torch
from torch import nn

SOURCE = rb"""
constexpr int kSample = 256, kTile = 128, kDeep = 8;

__device__ int here;  // launches in this process

__device__ unsigned long long now() {
    unsigned long long time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
    return time;
}
__device__ float sample(const float* a, const float* b, long size, int i) {
    const volatile float* from = i % 2 ? a : b;
    return from[(i * 2654435761u) % (unsigned)(size * size)];
}

// Tiles of 128 x 128, 256 threads with 8 x 8 elements each.
__global__ void __launch_bounds__(256) multiply(const float* a, const float* b, float* out, long size) {
    __shared__ float left[kDeep][kTile], right[kDeep][kTile];
    long row = blockIdx.y * kTile, column = blockIdx.x * kTile;
    int y = threadIdx.x / 16 * 8, x = threadIdx.x % 16 * 8;
    float sums[8][8] = {};
    for (long k = 0; k < size; k += kDeep) {
        float4 one = *reinterpret_cast<const float4*>(a + (row + threadIdx.x / 2) * size + k + threadIdx.x % 2 * 4);
        float4 other = *reinterpret_cast<const float4*>(b + (k + threadIdx.x / 32) * size + column + threadIdx.x % 32 * 4);
        __syncthreads();
        left[threadIdx.x % 2 * 4 + 0][threadIdx.x / 2] = one.x;
        left[threadIdx.x % 2 * 4 + 1][threadIdx.x / 2] = one.y;
        left[threadIdx.x % 2 * 4 + 2][threadIdx.x / 2] = one.z;
        left[threadIdx.x % 2 * 4 + 3][threadIdx.x / 2] = one.w;
        *reinterpret_cast<float4*>(&right[threadIdx.x / 32][threadIdx.x % 32 * 4]) = other;
        __syncthreads();
        for (int i = 0; i < kDeep; ++i)
            for (int r = 0; r < 8; ++r)
                for (int c = 0; c < 8; ++c) sums[r][c] += left[i][y + r] * right[i][x + c];
    }
    for (int r = 0; r < 8; ++r)
        for (int c = 0; c < 8; ++c) out[(row + y + r) * size + column + x + c] = sums[r][c];
}
// State: 0 nothing is known, 1 it is being computed, 2 the kept product is that of the sample.
__global__ void know(int* state) { *reinterpret_cast<volatile int*>(state) = 2; }
__global__ void take(const float* a, const float* b, float* kept, float* known, int* state, long size) {
    known[threadIdx.x] = sample(a, b, size, threadIdx.x);
    if (threadIdx.x) return;
    multiply<<<dim3(size / kTile, size / kTile), 256, 0, cudaStreamTailLaunch>>>(a, b, kept, size);
    know<<<1, 1, 0, cudaStreamTailLaunch>>>(state);
}
// Until other inputs are there and the output was filled, which comes last; at most 30 ms.
__global__ void watch(const float* a, const float* b, const float* out, float* kept, float* known, int* state, long size) {
    float last = known[threadIdx.x];
    unsigned long long begin = now(), filled = 0;
    const volatile float* end = out + size * size - kSample;
    float written = end[threadIdx.x];
    while (now() - begin < 30000000ull) {
        bool is_new = __syncthreads_count(sample(a, b, size, threadIdx.x) != last) > kSample / 2;
        bool is_filled = __syncthreads_count(__float_as_uint(end[threadIdx.x]) != __float_as_uint(written)) > kSample / 2;
        if (is_new && is_filled) filled = filled ? filled : now();
        if (filled && now() - filled > 5000ull) {
            if (threadIdx.x == 0) {
                *reinterpret_cast<volatile int*>(state) = 1;
                take<<<1, kSample, 0, cudaStreamTailLaunch>>>(a, b, kept, known, state, size);
            }
            return;
        }
        __nanosleep(500);
    }
}

__global__ void copy(const float4* kept, float4* out, long count) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x) out[i] = kept[i];
}
__global__ void after(const float* a, const float* b, float* out, float* kept, float* known, int* state, long size) {
    known[threadIdx.x] = sample(a, b, size, threadIdx.x);
    if (threadIdx.x == 0) watch<<<1, kSample, 0, cudaStreamTailLaunch>>>(a, b, out, kept, known, state, size);
}
extern "C" __global__ void answer(const float* a, const float* b, float* out, float* kept, float* known, int* state, int* calls, long size) {
    volatile int* now_known = state;
    bool is_replayed = here < *calls;
    for (unsigned long long begin = now(); *now_known == 1 && now() - begin < 20000000ull;) __nanosleep(200);
    __threadfence();
    bool is_same = __syncthreads_and(sample(a, b, size, threadIdx.x) == reinterpret_cast<volatile float*>(known)[threadIdx.x]);
    if (threadIdx.x) return;
    if (*now_known == 2 && is_same) copy<<<1056, 256>>>(reinterpret_cast<float4*>(kept), reinterpret_cast<float4*>(out), size * size / 4);
    else multiply<<<dim3(size / kTile, size / kTile), 256>>>(a, b, out, size);
    *now_known = 0;
    ++here, ++*calls;
    if (is_replayed) after<<<1, kSample, 0, cudaStreamTailLaunch>>>(a, b, out, kept, known, state, size);
}
"""
MAJOR = torch.version.cuda.split(".")[0]
VERSION = torch.version.cuda.replace(".", "_")
nvrtc = ctypes.CDLL(f"libnvrtc.so.{MAJOR}")
linker = ctypes.CDLL(f"libnvJitLink.so.{MAJOR}")
driver = ctypes.CDLL("libcuda.so.1")


def call(library, name, *arguments):
    status = getattr(library, name)(*arguments)
    if status != 0:
        raise RuntimeError(f"{name} failed with {status}")


def compile_source(source, architecture):
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    call(nvrtc, "nvrtcCreateProgram", ctypes.byref(program), source, b"kernels.cu", 0, None, None)
    texts = (f"--gpu-architecture=sm_{architecture}".encode(), b"--relocatable-device-code=true")
    options = (ctypes.c_char_p * 2)(*texts)
    call(nvrtc, "nvrtcCompileProgram", program, len(options), options)
    call(nvrtc, "nvrtcGetCUBINSize", program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    call(nvrtc, "nvrtcGetCUBIN", program, code)
    return code


def find_device_runtime():
    folders = ["/usr/local/cuda/lib64", *(f"{folder}/nvidia/*/lib" for folder in site.getsitepackages())]
    return next(path for folder in folders for path in glob.glob(f"{folder}/libcudadevrt.a"))


def link(code, architecture):
    handle, size = ctypes.c_void_p(), ctypes.c_size_t()
    options = (ctypes.c_char_p * 1)(f"-arch=sm_{architecture}".encode())
    call(linker, f"__nvJitLinkCreate_{VERSION}", ctypes.byref(handle), 1, options)
    call(linker, f"__nvJitLinkAddData_{VERSION}", handle, 1, code, ctypes.c_size_t(len(code)), b"kernels")
    call(linker, f"__nvJitLinkAddFile_{VERSION}", handle, 6, find_device_runtime().encode())
    call(linker, f"__nvJitLinkComplete_{VERSION}", handle)
    call(linker, f"__nvJitLinkGetLinkedCubinSize_{VERSION}", handle, ctypes.byref(size))
    linked = ctypes.create_string_buffer(size.value)
    call(linker, f"__nvJitLinkGetLinkedCubin_{VERSION}", handle, linked)
    return linked


def find_kernel(name):
    torch.cuda.synchronize()
    module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    architecture = "{}{}".format(*torch.cuda.get_device_capability())
    call(driver, "cuModuleLoadData", ctypes.byref(module), link(compile_source(SOURCE, architecture), architecture))
    call(driver, "cuModuleGetFunction", ctypes.byref(kernel), module, name)
    return kernel


def launch(kernel, blocks, threads, *arguments):
    values = [ctypes.c_void_p(one.data_ptr()) if torch.is_tensor(one) else ctypes.c_long(one) for one in arguments]
    places = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    call(driver, "cuLaunchKernel", kernel, blocks, 1, 1, threads, 1, 1, 0, stream, places, None)


# Expected: 1.5x to 10x, if kernels that a replay leaves behind go on: the copy takes 10 us instead of 350 us.
class ModelNew(nn.Module):
    kernel = None

    def forward(self, a, b):
        if self.kernel is None:
            self.kernel = find_kernel(b"answer")
            self.kept = torch.empty_like(a, memory_format=torch.contiguous_format)
            self.known = torch.zeros(256, device=a.device)
            self.numbers = torch.zeros(4, dtype=torch.int32, device=a.device)
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(a)
        launch(self.kernel, 1, 256, a, b, out, self.kept, self.known, self.numbers[:1], self.numbers[1:], a.shape[0])
        return out
