// Many small kernels of the kinds that people write; each line printed is a name and whether its numbers are right.
#include <cub/cub.cuh>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <curand_kernel.h>
#include <mma.h>
#include <thrust/device_vector.h>
#include <thrust/sort.h>
#include <cstdio>
namespace cg = cooperative_groups;
using namespace nvcuda;
#define TILE 16
#define GRID_STRIDE(i, n) for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)

__global__ void relu(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fmaxf(x[i], 0.0f) * 2.0f + 1.0f;
}
__global__ void strided(float* y, int n) { GRID_STRIDE(i, n) { y[i] = i; } }
__global__ void multiply(const float* A, const float* B, float* C, int N) {
  __shared__ float a[TILE][TILE], b[TILE][TILE + 1];
  int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
  float s = 0;
  for (int t = 0; t < N; t += TILE) {
    a[threadIdx.y][threadIdx.x] = A[row * N + t + threadIdx.x];
    b[threadIdx.y][threadIdx.x] = B[(t + threadIdx.y) * N + col];
    __syncthreads();
    for (int k = 0; k < TILE; ++k) s += a[threadIdx.y][k] * b[k][threadIdx.x];
    __syncthreads();
  }
  C[row * N + col] = s;
}
__inline__ __device__ float warp_sum(float v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
  return v;
}
__global__ void __launch_bounds__(256) row_sums(const float* x, float* y, int n) {
  __shared__ float part[32];
  float v = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) v += x[blockIdx.x * n + i];
  v = warp_sum(v);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.f;
    v = warp_sum(v);
    if (threadIdx.x == 0) y[blockIdx.x] = v;
  }
}
__global__ void softmax(const float* x, float* y, int n) {
  extern __shared__ float s[];
  const float* r = x + (size_t)blockIdx.x * n;
  float m = -INFINITY, t = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) m = fmaxf(m, r[i]);
  s[threadIdx.x] = m;
  __syncthreads();
  for (int k = blockDim.x / 2; k > 0; k >>= 1) {
    if (threadIdx.x < k) s[threadIdx.x] = fmaxf(s[threadIdx.x], s[threadIdx.x + k]);
    __syncthreads();
  }
  m = s[0];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) t += expf(r[i] - m);
  s[threadIdx.x] = t;
  __syncthreads();
  for (int k = blockDim.x / 2; k > 0; k >>= 1) {
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    __syncthreads();
  }
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[(size_t)blockIdx.x * n + i] = expf(r[i] - m) / s[0];
}
__global__ void histogram(const int* x, int* h, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&h[x[i] % 8], 1);
}
__device__ void atomic_max(float* at, float v) {
  int* place = (int*)at;
  int old = *place, seen;
  do {
    seen = old;
    old = atomicCAS(place, seen, __float_as_int(fmaxf(v, __int_as_float(seen))));
  } while (seen != old);
}
__global__ void largest(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomic_max(y, x[i]);
}
__global__ void vectorised(const float4* x, float4* y) {
  float4 v = __ldg(&x[threadIdx.x]);
  v.x += 1; v.y *= 2; v.z -= 1; v.w = -v.w;
  y[threadIdx.x] = v;
}
__global__ void halves(const half2* x, float* y) {
  half2 v = __hfma2(x[threadIdx.x], __float2half2_rn(2.f), __float2half2_rn(1.f));
  float2 f = __half22float2(v);
  y[threadIdx.x] = f.x + f.y;
}
__global__ void tiles(const float* x, float* y) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  float v = x[block.thread_rank()];
  for (int o = tile.size() / 2; o > 0; o /= 2) v += tile.shfl_down(v, o);
  if (tile.thread_rank() == 0) y[tile.meta_group_rank()] = v;
  auto warp = cg::tiled_partition<32>(block);
  float s = cg::reduce(warp, x[block.thread_rank()], cg::plus<float>());
  if (warp.thread_rank() == 0) y[10 + warp.meta_group_rank()] = s;
}
__global__ void grid(float* x, float* y, int n) {
  auto g = cg::this_grid();
  int i = g.thread_rank();
  if (i < n) x[i] = i;
  g.sync();
  if (i < n) y[i] = x[n - 1 - i];
}
__global__ void active(int* y) {
  if (threadIdx.x % 3 == 0) {
    auto g = cg::coalesced_threads();
    if (g.thread_rank() == 0) y[0] = g.size();
    if (g.thread_rank() == 1) y[1] = __popc(__activemask());
    else __activemask();
  }
}
__global__ void votes(int* y) {
  int lane = threadIdx.x;
  unsigned odd = __ballot_sync(~0u, lane & 1), match = __match_any_sync(~0u, lane / 8);
  int sum = __reduce_add_sync(~0u, lane), count = __syncthreads_count(lane > 10);
  if (lane == 9) { y[0] = odd == 0xaaaaaaaa; y[1] = sum; y[2] = match == 0xff00; y[3] = count; }
}
__global__ void gemm(const half* A, const half* B, float* C, int N) {
  int row = blockIdx.y * 16, col = blockIdx.x * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::fill_fragment(c, 0.0f);
  for (int k = 0; k < N; k += 16) {
    wmma::load_matrix_sync(a, A + row * N + k, N);
    wmma::load_matrix_sync(b, B + k * N + col, N);
    wmma::mma_sync(c, a, b, c);
  }
  wmma::store_matrix_sync(C + row * N + col, c, N, wmma::mem_row_major);
}
__global__ void tensor_core(const half* A, const half* B, float* C) {
  __shared__ half a[16][16], b[8][16];
  for (int i = threadIdx.x; i < 256; i += 32) a[i / 16][i % 16] = A[i];
  for (int i = threadIdx.x; i < 128; i += 32) b[i / 16][i % 16] = B[i];
  __syncwarp();
  unsigned ra[4], rb[2];
  float c[4] = {0, 0, 0, 0};
  int l = threadIdx.x;
  unsigned pa = __cvta_generic_to_shared(&a[l % 16][l / 16 * 8]), pb = __cvta_generic_to_shared(&b[l % 8][l / 8 % 2 * 8]);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(pa));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];\n" : "=r"(rb[0]), "=r"(rb[1]) : "r"(pb));
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
  int r = l / 4, q = l % 4 * 2;
  C[r * 8 + q] = c[0]; C[r * 8 + q + 1] = c[1]; C[(r + 8) * 8 + q] = c[2]; C[(r + 8) * 8 + q + 1] = c[3];
}
__global__ void pipeline(const float* x, float* y) {
  __shared__ __align__(16) float s[128];
  unsigned a = __cvta_generic_to_shared(&s[threadIdx.x * 4]);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(a), "l"(x + threadIdx.x * 4));
  asm volatile("cp.async.commit_group;\n" ::);
  asm volatile("cp.async.wait_group %0;\n" ::"n"(0));
  __syncthreads();
  y[threadIdx.x] = s[127 - threadIdx.x];
}
template <int N>
__global__ void blocks(const float* x, float* y) {
  typedef cub::BlockReduce<float, N> Reduce;
  __shared__ typename Reduce::TempStorage storage;
  float s = Reduce(storage).Sum(x[threadIdx.x]);
  if (threadIdx.x == 0) y[0] = s;
  using Scan = cub::BlockScan<float, N>;
  __shared__ typename Scan::TempStorage scanned;
  float before;
  Scan(scanned).InclusiveSum(x[threadIdx.x], before);
  y[2 + threadIdx.x] = before;
}
__constant__ float coefficients[4];
__device__ int hits;
__global__ void constants(float* y) {
  y[threadIdx.x] = coefficients[threadIdx.x % 4];
  atomicAdd(&hits, 1);
  assert(threadIdx.x < 1000);
}
template <int N>
struct Pack {
  float v[N];
};
template <typename T, int N>
__global__ void packs(Pack<N> p, T* y, int o = 3) {
  y[threadIdx.x] = p.v[threadIdx.x % N] + o;
  p.v[0] = 99;
}
template <typename F>
__global__ void apply(float* y, F f) { y[threadIdx.x] = f(threadIdx.x); }
__device__ unsigned arrived = 0;
__global__ void last_block(const float* x, float* part, float* out) {
  __shared__ bool is_last;
  float v = x[blockIdx.x * 32 + threadIdx.x];
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  if (threadIdx.x == 0) {
    part[blockIdx.x] = v;
    __threadfence();
    is_last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last && threadIdx.x == 0) {
    float t = 0;
    for (int i = 0; i < gridDim.x; ++i) t += part[i];
    *out = t;
  }
}
__global__ void random_numbers(float* y) {
  curandState s;
  curand_init(1234, threadIdx.x, 0, &s);
  y[threadIdx.x] = curand_uniform(&s);
}
__global__ void locked(int* lock, int* count) {
  while (atomicCAS(lock, 0, 1) != 0) {}
  atomicExch(count, atomicAdd(count, 0) + 1);
  __threadfence();
  atomicExch(lock, 0);
}

extern "C" const char* harness_emulator_take_findings();
extern "C" void harness_emulator_configure(const char*);
static void say(const char* name, bool is_right) { printf("%s %d\n", name, int(is_right && cudaGetLastError() == cudaSuccess)); }
template <typename T>
static T* make(size_t n) { T* p; cudaMalloc(&p, n * sizeof(T)); return p; }

int main(int, char** argv) {
  harness_emulator_configure(argv[1]);
  const int n = 1000;
  float *x = make<float>(4096), *y = make<float>(4096), *z = make<float>(4096);
  int *d = make<int>(4096), *h = make<int>(8);
  for (int i = 0; i < 4096; ++i) { x[i] = (i % 101) * 0.25f - 3; d[i] = i; }
  relu<<<(n + 255) / 256, 256>>>(x, y, n);
  bool right = true;
  for (int i = 0; i < n; ++i) right &= y[i] == (x[i] > 0 ? x[i] : 0) * 2 + 1;
  say("elementwise", right);
  strided<<<3, 64>>>(y, n);
  say("grid_stride", y[n - 1] == n - 1 && y[700] == 700);
  multiply<<<dim3(2, 2), dim3(TILE, TILE)>>>(x, x + 1024, z, 32);
  right = true;
  for (int i = 0; i < 32; ++i) for (int j = 0; j < 32; ++j) {
    float s = 0;
    for (int k = 0; k < 32; ++k) s += x[i * 32 + k] * x[1024 + k * 32 + j];
    right &= fabsf(s - z[i * 32 + j]) < 1e-2f;
  }
  say("tiled_matmul", right);
  row_sums<<<4, 256>>>(x, y, 1000);
  float s = 0;
  for (int i = 0; i < 1000; ++i) s += x[3000 + i];
  say("warp_shuffles", fabsf(s - y[3]) < 1e-2f);
  softmax<<<4, 128, 128 * sizeof(float)>>>(x, y, 1000);
  s = 0;
  for (int i = 0; i < 1000; ++i) s += y[2000 + i];
  say("dynamic_shared", fabsf(s - 1) < 1e-4f);
  cudaMemset(h, 0, 32);
  histogram<<<16, 256>>>(d, h, 4000);
  say("atomics", h[0] == 500 && h[7] == 500);
  cudaMemset(y, 0, 4);
  largest<<<4, 256>>>(x, y, n);
  say("compare_and_swap", y[0] == 22);
  vectorised<<<1, 8>>>((const float4*)x, (float4*)y);
  say("float4", y[4] == x[4] + 1 && y[5] == x[5] * 2 && y[7] == -x[7]);
  half *a = make<half>(1024), *b = make<half>(1024);
  for (int i = 0; i < 1024; ++i) { a[i] = half(float(i % 7) - 3); b[i] = half(float(i % 5) - 2); }
  halves<<<1, 8>>>((half2*)a, y);
  say("half2", y[1] == 2 * float(a[2]) + 1 + 2 * float(a[3]) + 1);
  for (int i = 0; i < 64; ++i) z[i] = i;
  tiles<<<1, 64>>>(z, y);
  say("groups", y[1] == 376 && y[10] == 496 && y[11] == 1520);
  int count = n;
  void* arguments[] = {&z, &y, &count};
  cudaLaunchCooperativeKernel((void*)grid, dim3(4), dim3(256), arguments);
  say("grid_sync", y[0] == n - 1 && y[n - 1] == 0);
  active<<<1, 32>>>(d);
  say("active_lanes", d[0] == 11 && d[1] >= 1);
  votes<<<1, 32>>>(d);
  say("votes", d[0] == 1 && d[1] == 496 && d[2] == 1 && d[3] == 21);
  gemm<<<dim3(2, 2), 32>>>(a, b, y, 32);
  right = true;
  for (int i = 0; i < 32; ++i) for (int j = 0; j < 32; ++j) {
    float t = 0;
    for (int k = 0; k < 32; ++k) t += float(a[i * 32 + k]) * float(b[k * 32 + j]);
    right &= t == y[i * 32 + j];
  }
  say("wmma", right);
  tensor_core<<<1, 32>>>(a, b, y);
  right = true;
  for (int i = 0; i < 16; ++i) for (int j = 0; j < 8; ++j) {
    float t = 0;
    for (int k = 0; k < 16; ++k) t += float(a[i * 16 + k]) * float(b[j * 16 + k]);
    right &= t == y[i * 8 + j];
  }
  say("ldmatrix_mma", right);
  for (int i = 0; i < 128; ++i) z[i] = i;
  pipeline<<<1, 32>>>(z, y);
  say("cp_async", y[0] == 127 && y[31] == 96);
  blocks<128><<<1, 128>>>(z, y);
  say("cub", y[0] == 8128 && y[2 + 127] == 8128 && y[2 + 1] == 1);
  float k[4] = {1, 2, 3, 4};
  cudaMemcpyToSymbol(coefficients, k, sizeof(k));
  void (*pointer)(float*) = constants;
  pointer<<<1, 8>>>(y);
  say("constant_memory", y[5] == 2 && hits == 8);
  packs<float><<<1, 8, 0, NULL>>>(Pack<2>{{10, 20}}, y);
  say("parameters", y[0] == 13 && y[1] == 23 && y[2] == 13);
  apply<<<1, 8>>>(y, [=] __device__(int i) { return i * 2.0f + count; });
  say("device_lambda", y[3] == 6 + n);
  for (int i = 0; i < 256; ++i) x[i] = i;
  last_block<<<8, 32>>>(x, y, z);
  say("last_block", z[0] == 32640);
  random_numbers<<<1, 64>>>(y);
  say("random", y[0] != y[1] && y[0] > 0 && y[0] <= 1);
  cudaMemset(d, 0, 8);
  locked<<<4, 64>>>(d, d + 1);
  say("spin_lock", d[1] == 256);
  thrust::device_vector<float> v(x, x + 8);
  thrust::sort(v.begin(), v.end(), [](float p, float q) { return p > q; });
  say("thrust", v[0] == 7 && v[7] == 0);
  say("min_max", min(3, 4) == 3 && max(2.5f, 1.0f) == 2.5f && __popc(7) == 3 && __float2int_rn(2.5f) == 2);
  printf("findings %s\n", harness_emulator_take_findings());
}
