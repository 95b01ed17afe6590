// What nvcc takes: a name, then the source, each in a namespace of its own.

//= a_host_function_of_both_sides
float h(float v) { return v + 1; } __host__ __device__ float d(float v) { return v > 1e9f ? h(v) : v; }

//= a_constexpr_function
constexpr int h(int v) { return v + 1; } __global__ void k(float* x) { x[0] = h(x[0]); }

//= a_macro_for_both_sides
#define HD __host__ __device__
HD float h(float v) { return v; } __global__ void k(float* x) { x[0] = h(x[0]); }

//= a_macro_that_makes_a_function
#define MAKE(n) __device__ float n(float v) { return v; }
MAKE(h)
float h(int, int) { return 1; } __global__ void k(float* x) { x[0] = h(x[0]); }

//= an_overload_for_each_side
float h(int a) { return a; } __device__ float h(float v) { return v; } __global__ void k(float* x) { x[0] = h(x[0]); }

//= a_declaration_for_the_device
__device__ float h(float v); __global__ void k(float* x) { x[0] = h(x[0]); } float h(float v) { return v; }

//= a_local_lambda_of_the_same_name
float h(float v) { return v + 1; } __global__ void k(float* x) { auto h = [](float v) { return v; }; x[0] = h(x[0]); }

//= a_host_function_for_the_launch
int h() { return 1; } __global__ void k(float* x, int n) { x[0] = n; } void l(float* x) { k<<<h(), 1>>>(x, h()); }

//= an_overload_of_cudas_own
using ::max; float max(float a, float b, float c) { return a + b + c; } __global__ void k(float* x) { x[0] = max(x[0], x[1]); }

//= a_member_of_the_same_name
float h(float v) { return v + 1; } struct S { __device__ float h(float v) { return v; } }; __global__ void k(float* x) { S s; x[0] = s.h(x[0]); }

//= a_constant_of_the_host
const int N = 4; const float F = 2.5f; constexpr float G = 2; __global__ void k(float* x) { x[0] = N * F * G; }

//= a_constexpr_array_in_a_constant
constexpr int t[4] = {1, 2, 3, 4}; __global__ void k(float* x) { constexpr int v = t[1]; x[0] = v; }

//= a_variable_in_the_shadow_of_a_local_one
int N = 4; __global__ void k(float* x) { int N = 3; x[0] = N; }

//= a_variable_in_the_shadow_of_a_parameter
int N = 4; __global__ void k(float* x, int N) { x[0] = N; }

//= a_local_constant_array
__global__ void k(float* x) { constexpr float w[3] = {1, 2, 3}; x[0] = w[threadIdx.x]; }

//= a_device_lambda
template <class F> __global__ void k(float* x, F f) { x[0] = f(x[0]); } void l(float* x) { auto f = [] __device__(float v) { return __expf(v); }; k<<<1, 1>>>(x, f); }

//= dynamic_shared_memory_of_one_type
__global__ void k(float* x) { extern __shared__ float sm[]; x[0] = sm[0]; } __global__ void j(float* x) { extern __shared__ __align__(16) float sm[]; x[0] = sm[0]; }

//= dynamic_shared_memory_of_a_template
template <typename T> __global__ void k(T* x) { extern __shared__ T sm[]; x[0] = sm[0]; } void l(float* x) { k<<<1, 1>>>(x); }

//= an_array_of_a_constant_length
__global__ void k(float* x) { const int n = 4; float a[n]; a[0] = 1; x[0] = a[0]; }

//= an_array_of_a_run_time_length_on_the_host
float f(int n) { float a[n]; a[0] = 1; return a[0]; }

//= arithmetic_of_the_library
__global__ void k(float* x) { x[0] = std::exp(x[0]) + std::max(x[0], x[1]) + std::isnan(x[0]) + std::numeric_limits<float>::infinity() + std::clamp(x[0], 0.f, 1.f); std::swap(x[0], x[1]); }

//= containers_of_a_fixed_size
__global__ void k(float* x) { std::array<float, 3> a; a[0] = 1; std::pair<int, float> p{1, 2}; auto t = std::make_tuple(1, 2); x[0] = a[0] + p.second + std::get<0>(t); }

//= memory_of_the_device
__global__ void k(float* x) { float* p = new float[4]; p[0] = 1; x[0] = p[0]; delete[] p; free(malloc(4)); }

//= a_recursion
__device__ int f(int n) { return n < 2 ? 1 : n * f(n - 1); } __global__ void k(float* x) { x[0] = f(x[0]); }

//= launch_bounds_in_front
__launch_bounds__(256) __global__ void k(float* x) { x[0] = 1; } __global__ void __launch_bounds__(64, 2) j() {}

//= a_pack_of_parameters
template <typename... A> __global__ void k(float* x, A... a) { x[0] = sizeof...(a); } void l(float* x) { k<<<1, 1>>>(x, 1, 2.f); }

//= a_parameter_that_is_a_reference
struct S { int a; }; __global__ void k(float* x, const S s) { x[0] = s.a; }

//= a_kernel_and_a_function_of_one_name
__global__ void f(float* x, int n) { x[0] = n; } void f(float* x) { f<<<1, 1>>>(x, 1); } void l(float* x) { f(x); }

//= a_kernel_and_a_lambda_of_one_name
__global__ void f(float* x) { x[0] = 1; } __global__ void k(float* x) { auto f = [](float v) { return v + 1; }; x[0] = f(x[0]); } void l(float* x) { f<<<1, 1>>>(x); k<<<1, 1>>>(x); }

//= a_pointer_to_a_function_and_a_cast
typedef float (*F)(float); __device__ float f(float v) { return v; } __device__ F p = f; __global__ void k(int* x) { x[0] = p(x[0]) + static_cast<float>(x[1]); }

//= sums_that_convert
__global__ void k(float* x) { atomicAdd(x, 1); atomicAdd(x, 1.0); x[1] = max(x[0], 0.0); x[2] = fmaxf(x[0], 0); }

//= small_values_in_shuffles
__global__ void k(short* x, bool* y) { x[0] = __shfl_sync(~0u, x[0], 1); y[0] = __shfl_sync(~0u, y[0], 1); }

//= rounded_arithmetic
__global__ void k(float* x) { x[0] = __fmaf_rz(1, 2, 3) + __fadd_rd(1, 2) + __int2float_rz(3) + normf(3, x) + rnorm4df(1, 2, 3, 4) + erfcinvf(.5f) + cyl_bessel_i0f(1.f) + __usad(1, 2, 3) + __vadd4(1, 2) + __funnelshift_lc(1, 2, 3) + __fns(1, 2, 3); }
