// What nvcc refuses: a name, then the source, each in a namespace of its own.

//= a_host_function_in_a_kernel
float h(float v) { return v + 1; } __global__ void k(float* x) { x[0] = h(x[0]); }

//= a_host_template_in_a_kernel
template <typename T> T h(T v) { return v; } __global__ void k(float* x) { x[0] = h(x[0]); }

//= a_host_function_in_a_device_function
static inline float h(float v) { return v + 1; } __device__ float d(float v) { return h(v); } __global__ void k(float* x) { x[0] = d(x[0]); }

//= a_host_function_in_a_kernel_template
float h(float v) { return v + 1; } template <int N> __global__ void k(float* x) { x[0] = h(x[0]); } void l(float* x) { k<4><<<1, 1>>>(x); }

//= a_kernel_with_a_result
__global__ int k(float* x) { x[0] = 1; return 1; }

//= a_kernel_with_a_deduced_result
__global__ auto k(float* x) { x[0] = 1; }

//= a_kernel_for_both_sides
__host__ __global__ void k(float* x) { x[0] = 1; }

//= a_kernel_that_is_a_member
struct S { __global__ void k(float* x) { x[0] = 1; } };

//= a_kernel_that_is_a_static_member
struct S { static __global__ void k(float* x) { x[0] = 1; } };

//= a_kernel_with_an_ellipsis
__global__ void k(float* x, ...) { x[0] = 1; }

//= launch_bounds_behind_the_parameters
__global__ void k(float* x) __launch_bounds__(256) { x[0] = 1; }

//= shared_memory_of_a_run_time_size
__global__ void k(float* x, int n) { __shared__ float s[n]; s[0] = 1; x[0] = s[0]; }

//= shared_memory_of_the_blocks_size
__global__ void k(float* x) { __shared__ float s[blockDim.x]; s[0] = 1; x[0] = s[0]; }

//= shared_memory_with_a_value
__global__ void k(float* x) { __shared__ int s = 0; x[0] = s; }

//= shared_memory_with_values
__global__ void k(float* x) { __shared__ float s[4] = {0}; x[0] = s[0]; }

//= shared_memory_on_the_host
void f() { __shared__ float s[4]; s[0] = 1; }

//= dynamic_shared_memory_of_two_types
__global__ void k(float* x) { extern __shared__ float sm[]; x[0] = sm[0]; } __global__ void j(double* x) { extern __shared__ double sm[]; x[0] = sm[0]; }

//= dynamic_shared_memory_of_two_types_of_a_template
template <typename T> __global__ void k(T* x) { extern __shared__ T sm[]; x[0] = sm[0]; } void l(float* x, double* y) { k<<<1, 1>>>(x); k<<<1, 1>>>(y); }

//= a_kernel_that_calls_a_kernel
__global__ void j(float* x) { x[0] = 1; } __global__ void k(float* x) { j(x); }

//= a_host_that_calls_a_kernel
__global__ void j(float* x) { x[0] = 1; } void l(float* x) { j(x); }

//= a_host_that_calls_a_kernel_template
template <int N> __global__ void j(float* x) { x[0] = 1; } void l(float* x) { j<3>(x); }

//= a_kernel_that_launches
__global__ void j(float* x) { x[0] = 1; } __global__ void k(float* x) { j<<<1, 1>>>(x); }

//= a_device_function_on_the_host
__device__ int d(int a, int b) { return (a + b - 1) / b; } int l(int n) { return d(n, 4); }

//= a_barrier_on_the_host
void f() { __syncthreads(); }

//= an_intrinsic_on_the_host
float f(float x) { return __expf(x); }

//= an_atomic_on_the_host
void f(int* x) { atomicAdd(x, 1); }

//= a_stream_of_the_library
__global__ void k(float* x) { std::cout << x[0]; }

//= a_function_object_of_the_library
__global__ void k(float* x) { std::function<float(float)> f = [](float v) { return v; }; x[1] = f(1); }

//= a_smart_pointer
__global__ void k(float* x) { auto p = std::make_unique<float[]>(4); x[0] = p[0]; }

//= a_clock_of_the_library
__global__ void k(float* x) { auto t = std::chrono::high_resolution_clock::now(); }

//= an_exception
__global__ void k(float* x) { if (x[0] > 1) throw std::runtime_error("a"); }

//= a_handler
__global__ void k(float* x) { try { x[0] = 1; } catch (...) {} }

//= a_type_at_run_time
__global__ void k(float* x) { x[0] = typeid(float) == typeid(int); }

//= an_array_of_a_run_time_length
__global__ void k(float* x, int n) { float a[n]; a[0] = 1; x[0] = a[0]; }

//= an_array_of_a_run_time_length_in_a_device_function
__device__ float f(int n) { float a[n]; a[0] = 1; return a[0]; }

//= a_value_for_a_constant
__constant__ int c; __global__ void k(float* x) { c = 1; }

//= a_variable_of_the_host
int N = 4; __global__ void k(float* x) { x[0] = N; }

//= a_static_variable_of_the_host
static float s = 4; __global__ void k(float* x) { x[0] = s; }

//= a_pointer_of_the_host
float* P; __global__ void k() { P[0] = 3; }

//= a_constant_array_of_the_host
const float t[4] = {1, 2, 3, 4}; __global__ void k(float* x) { x[0] = t[threadIdx.x]; }

//= a_constexpr_array_of_the_host
constexpr int t[4] = {1, 2, 3, 4}; __global__ void k(float* x) { x[0] = t[threadIdx.x]; }

//= an_atomic_of_a_type_that_has_none
__global__ void k(long long* x) { atomicAdd(x, 1LL); }

//= a_maximum_of_float_and_int
__global__ void k(float* x, int n) { x[0] = max(x[0], n); }

//= a_minimum_of_int_and_size
__global__ void k(float* x, int n, size_t m) { x[0] = min(n, m); }

//= a_shuffle_of_a_vector
__global__ void k(float2* x) { x[0] = __shfl_sync(~0u, x[0], 1); }

//= a_shuffle_without_a_mask
__global__ void k(float* x) { x[0] = __shfl_down(x[0], 1); }

//= a_hinted_load_of_a_structure
struct S { int a; }; __global__ void k(const S* x, int* y) { y[0] = __ldg(x).a; }

//= a_sum_of_vectors
__global__ void k(float4* x) { x[0] = x[0] + x[1]; }

//= a_result_through_a_constant_pointer
__global__ void k(const float* x) { x[0] = 1; }
