// PTX again: cvta and cvt in one asm block, raw strings, predicates, ldmatrix orders, red, cache hints, conversions.
// forward: torch.zeros(1, dtype=torch.int32, device=x.device) + 0 * x.int()[:1]
// inputs: x = torch.ones(64)
#include <torch/extension.h>
#include <cuda_fp16.h>
__device__ __forceinline__ unsigned get_smem_pointer(const void* ptr) {
  unsigned a;
  asm("{ .reg .u64 smem_ptr; cvta.to.shared.u64 smem_ptr, %1; cvt.u32.u64 %0, smem_ptr; }\n" : "=r"(a) : "l"(ptr));
  return a;
}
__device__ __forceinline__ void ld128(unsigned a, float4& v) { asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(a)); }
__device__ __forceinline__ void red_add(float* p, float v) { asm volatile("red.global.add.f32 [%0], %1;" ::"l"(p), "f"(v) : "memory"); }
__device__ __forceinline__ int pred_ld(const int* p, bool ok) {
  int r = -1;
  asm volatile(
      "{\n"
      "  .reg .pred p;\n"
      "  setp.ne.b32 p, %2, 0;\n"
      "  mov.b32 %0, %3;\n"
      "  @p ld.global.nc.b32 %0, [%1];\n"
      "}\n" : "=r"(r) : "l"(p), "r"((int)ok), "r"(-7));
  return r;
}
__global__ void k(float* x, int* bad) {
  __shared__ __align__(16) float s[64];
  __shared__ __align__(16) half h[8][8];
  const int t = threadIdx.x;
  int e = 0;
  s[t] = t; for (int i = t; i < 64; i += 32) { s[i] = i; h[i / 8][i % 8] = __float2half(float(i)); }
  __syncthreads();
  float4 v; ld128(get_smem_pointer(&s[(t % 16) * 4]), v); e += v.y != (t % 16) * 4 + 1;
  unsigned r; asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r) : "r"(get_smem_pointer(&h[t % 8][0])));
  e += __half2float(__ushort_as_half(r & 0xffff)) != (t / 4) * 8 + (t % 4) * 2;
  int iv = 5; e += pred_ld(&((int*)x)[0], false) != -7; (void)iv;
  int q; asm("cvt.rni.s32.f32 %0, %1;" : "=r"(q) : "f"(2.5f)); e += q != 2;
  float f; asm("cvt.rn.f32.u32 %0, %1;" : "=f"(f) : "r"(7u)); e += f != 7.f;
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(f) : "f"(2.f), "f"(3.f), "f"(1.f)); e += f != 7.f;
  asm("max.f32 %0, %1, %2;" : "=f"(f) : "f"(2.f), "f"(__int_as_float(0x7fffffff))); e += f != 2.f;
  unsigned m; asm volatile("redux.sync.add.s32 %0, %1, 0xffffffff;" : "=r"(m) : "r"(1)); e += m != 32;
  asm volatile("vote.sync.ballot.b32 %0, 1, 0xffffffff;" : "=r"(m)); (void)m;
  asm volatile(R"({
    .reg .b32 t<2>;
    mov.u32 t0, 3;
    add.u32 t1, t0, %1;
    mov.u32 %0, t1;
  })" : "=r"(m) : "r"(4)); e += m != 7;
  unsigned long long w; asm("mul.wide.u32 %0, %1, %2;" : "=l"(w) : "r"(0x80000000u), "r"(2u)); e += w != 1ull << 32;
  asm("mad.lo.s32 %0, %1, %2, %3;" : "=r"(q) : "r"(3), "r"(4), "r"(5)); e += q != 17;
  asm("{.reg .pred p, q;\n setp.gt.s32 p, %1, 3;\n not.pred q, p;\n selp.s32 %0, 1, 2, q;}" : "=r"(q) : "r"(9)); e += q != 2;
  asm("bfind.u32 %0, %1;" : "=r"(m) : "r"(16u)); e += m != 4;
  red_add(&x[t], 0.f);
  asm volatile("prefetch.global.L2 [%0];" ::"l"(x));
  if (e) atomicAdd(bad, e);
}
torch::Tensor run(torch::Tensor x) { auto b = torch::zeros({1}, x.options().dtype(torch::kInt32)); auto y = x.clone(); k<<<1, 32>>>(y.data_ptr<float>(), b.data_ptr<int>()); return b; }
