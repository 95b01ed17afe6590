"""Leaves a kernel behind that reads its weights again and again, so that they are in the cache when the next replay begins.

layer: time
mechanism: The cache is flushed before each replay, after which nothing of the program runs; but a tail launch of the
    last replay still does.
problem: gpu_vector_by_matrix
expected: no_gain, suspect, unranked, runtime_error, load_error
device: gpu
timed: yes
"""

import ctypes
import glob
import site

import torch
from torch import nn

SOURCE = rb"""
__device__ int here;  // launches in this process

__device__ unsigned long long now() {
    unsigned long long time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
    return time;
}
// Reads the weights again and again, at most for 50 ms.
__global__ void keep(const float4* weight, long count, volatile int* stop, float* unused) {
    float sum = 0.0f;
    for (unsigned long long begin = now(); *stop == 0 && now() - begin < 50000000ull;)
        for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (long)blockDim.x) {
            float4 one = __ldcg(weight + i);
            sum += one.x + one.y + one.z + one.w;
        }
    if (sum == 1e30f) *unused = sum;
}
__global__ void begin_again(const float4* weight, long count, int* stop, float* unused) {
    *stop = 0;
    keep<<<132, 128, 0, cudaStreamTailLaunch>>>(weight, count, stop, unused);
}

// One warp per row.
extern "C" __global__ void multiply(const float4* x, const float4* weight, float* out, int* stop, int* calls, float* unused, long size) {
    bool is_first = blockIdx.x + threadIdx.x == 0;
    if (is_first) *reinterpret_cast<volatile int*>(stop) = 1;
    long row = (blockIdx.x * (long)blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    float sum = 0.0f;
    if (row < size) {
        for (long i = lane; i < size / 4; i += 32) {
            float4 one = weight[row * (size / 4) + i], other = x[i];
            sum += one.x * other.x + one.y * other.y + one.z * other.z + one.w * other.w;
        }
        for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
        if (lane == 0) out[row] = sum;
    }
    if (!is_first) return;
    bool is_replayed = here < *calls;
    ++here, ++*calls;
    if (is_replayed) begin_again<<<1, 1, 0, cudaStreamTailLaunch>>>(weight, size * size / 4, stop, unused);
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


# Expected: 1.5x to 2.5x: 26 MB of weights come from the cache instead of the memory.
class ModelNew(nn.Module):
    kernel = None

    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size, size) / size**0.5)

    def forward(self, x):
        if self.kernel is None:
            self.kernel = find_kernel(b"multiply")
            self.numbers = torch.zeros(8, dtype=torch.int32, device=x.device)
            self.unused = torch.zeros(1, device=x.device)
        x = x.contiguous()
        out = torch.empty_like(x)
        size = self.weight.shape[0]
        launch(self.kernel, size // 8, 256, x, self.weight, out, self.numbers[:1], self.numbers[4:], self.unused, size)
        return out
