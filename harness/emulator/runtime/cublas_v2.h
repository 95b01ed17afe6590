// The matrix products of cuBLAS, by torch's own. Matrices are in columns, so each is the transposed one in rows.
#pragma once
#include <ATen/ATen.h>
#include <ATen/ops/diag.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <cuda_fp16.h>
#include <emulator/runtime_api.h>
#include <library_types.h>

enum cublasStatus_t { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_INITIALIZED = 1, CUBLAS_STATUS_ALLOC_FAILED = 3, CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8, CUBLAS_STATUS_MAPPING_ERROR = 11, CUBLAS_STATUS_EXECUTION_FAILED = 13, CUBLAS_STATUS_INTERNAL_ERROR = 14, CUBLAS_STATUS_NOT_SUPPORTED = 15 };
enum cublasFillMode_t { CUBLAS_FILL_MODE_LOWER = 0, CUBLAS_FILL_MODE_UPPER = 1, CUBLAS_FILL_MODE_FULL = 2 };
enum cublasDiagType_t { CUBLAS_DIAG_NON_UNIT = 0, CUBLAS_DIAG_UNIT = 1 };
enum cublasSideMode_t { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 };
enum cublasAtomicsMode_t { CUBLAS_ATOMICS_NOT_ALLOWED = 0, CUBLAS_ATOMICS_ALLOWED = 1 };
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 };
enum cublasMath_t { CUBLAS_DEFAULT_MATH = 0, CUBLAS_TENSOR_OP_MATH = 1, CUBLAS_PEDANTIC_MATH = 2, CUBLAS_TF32_TENSOR_OP_MATH = 3 };
enum cublasComputeType_t { CUBLAS_COMPUTE_16F = 64, CUBLAS_COMPUTE_16F_PEDANTIC = 65, CUBLAS_COMPUTE_32F_PEDANTIC = 69, CUBLAS_COMPUTE_32I = 72, CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_FAST_16F = 74, CUBLAS_COMPUTE_32F_FAST_16BF = 75, CUBLAS_COMPUTE_32F_FAST_TF32 = 77, CUBLAS_COMPUTE_64F = 70 };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DFALT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99, CUBLAS_GEMM_DFALT_TENSOR_OP = 99 };
struct cublasContext {};
using cublasHandle_t = cublasContext*;

namespace harness_emulator __attribute__((visibility("hidden"))) {
inline cublasHandle_t getCurrentCUDABlasHandle() {
  static cublasContext only;
  return &only;
}
inline at::ScalarType scalar_type_of(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_64F: return at::kDouble;
    case CUDA_R_16F: return at::kHalf;
    case CUDA_R_16BF: return at::kBFloat16;
    case CUDA_R_8I: return at::kChar;
    case CUDA_R_32I: return at::kInt;
    default: return at::kFloat;
  }
}
// A column-major matrix in memory, as batches of rows x columns.
inline at::Tensor view_columns(const void* data, at::ScalarType type, int64_t rows, int64_t columns, int64_t leading, int64_t stride,
                               int64_t batches) {
  return at::from_blob(const_cast<void*>(data), {batches, rows, columns}, {stride, 1, leading}, at::TensorOptions().dtype(type));
}
inline cublasStatus_t multiply(cublasOperation_t a_op, cublasOperation_t b_op, int64_t m, int64_t n, int64_t k, double alpha,
                               const void* a, cudaDataType_t a_type, int64_t lda, int64_t a_stride, const void* b,
                               cudaDataType_t b_type, int64_t ldb, int64_t b_stride, double beta, void* c, cudaDataType_t c_type,
                               int64_t ldc, int64_t c_stride, int64_t batches) {
  if (m < 0 || n < 0 || k < 0 || lda < (a_op == CUBLAS_OP_N ? m : k) || ldb < (b_op == CUBLAS_OP_N ? k : n) || ldc < m) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const bool is_double = c_type == CUDA_R_64F;
  const at::ScalarType wide = is_double ? at::kDouble : at::kFloat;
  at::Tensor left = view_columns(a, scalar_type_of(a_type), a_op == CUBLAS_OP_N ? m : k, a_op == CUBLAS_OP_N ? k : m, lda, a_stride, batches);
  at::Tensor right = view_columns(b, scalar_type_of(b_type), b_op == CUBLAS_OP_N ? k : n, b_op == CUBLAS_OP_N ? n : k, ldb, b_stride, batches);
  if (a_op != CUBLAS_OP_N) { left = left.transpose(1, 2); }
  if (b_op != CUBLAS_OP_N) { right = right.transpose(1, 2); }
  at::Tensor out = view_columns(c, scalar_type_of(c_type), m, n, ldc, c_stride, batches);
  at::Tensor product = at::matmul(left.to(wide), right.to(wide)) * alpha;
  if (beta != 0.0) { product = product + out.to(wide) * beta; }
  out.copy_(product);
  return CUBLAS_STATUS_SUCCESS;
}
inline double number(double value) { return value; }
inline double number(const __half& value) { return value.harness_value(); }
inline double read_scalar(const void* at, cublasComputeType_t type) {
  if (type == CUBLAS_COMPUTE_64F) { return *static_cast<const double*>(at); }
  if (type == CUBLAS_COMPUTE_16F || type == CUBLAS_COMPUTE_16F_PEDANTIC) { return double(static_cast<const __half*>(at)->harness_value()); }
  return double(*static_cast<const float*>(at));
}
// Older calls say the type of the sum as a type of data.
inline double read_scalar(const void* at, cudaDataType_t type) {
  return read_scalar(at, type == CUDA_R_16F ? CUBLAS_COMPUTE_16F : type == CUDA_R_64F ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F);
}
}

inline cublasStatus_t cublasCreate(cublasHandle_t* handle) { *handle = harness_emulator::getCurrentCUDABlasHandle(); return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasDestroy(cublasHandle_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasGetMathMode(cublasHandle_t, cublasMath_t* mode) { *mode = CUBLAS_DEFAULT_MATH; return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetPointerMode(cublasHandle_t, cublasPointerMode_t mode) {
  return mode == CUBLAS_POINTER_MODE_HOST ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
#define HARNESS_GEMM(Name, T, Type)                                                                                          \
  inline cublasStatus_t cublas##Name##gemm(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,   \
                                           const T* alpha, const T* a, int lda, const T* b, int ldb, const T* beta, T* c, int ldc) { \
    return harness_emulator::multiply(ta, tb, m, n, k, harness_emulator::number(*alpha), a, Type, lda, 0, b, Type, ldb, 0, harness_emulator::number(*beta), c, Type, ldc, 0, 1); \
  }                                                                                                                          \
  inline cublasStatus_t cublas##Name##gemmStridedBatched(                                                                    \
      cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T* alpha, const T* a, int lda,  \
      long long sa, const T* b, int ldb, long long sb, const T* beta, T* c, int ldc, long long sc, int batches) {            \
    return harness_emulator::multiply(ta, tb, m, n, k, harness_emulator::number(*alpha), a, Type, lda, sa, b, Type, ldb, sb, harness_emulator::number(*beta), c, Type, ldc, sc, batches); \
  }
HARNESS_GEMM(S, float, CUDA_R_32F)
HARNESS_GEMM(D, double, CUDA_R_64F)
HARNESS_GEMM(H, __half, CUDA_R_16F)
template <typename Compute>
cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void* alpha,
                                   const void* a, cudaDataType_t at, int lda, const void* b, cudaDataType_t bt, int ldb,
                                   const void* beta, void* c, cudaDataType_t ct, int ldc, Compute compute, cublasGemmAlgo_t) {
  return harness_emulator::multiply(ta, tb, m, n, k, harness_emulator::read_scalar(alpha, compute), a, at, lda, 0, b, bt, ldb, 0,
                                    harness_emulator::read_scalar(beta, compute), c, ct, ldc, 0, 1);
}
template <typename Compute>
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                                                 const void* alpha, const void* a, cudaDataType_t at, int lda, long long sa, const void* b,
                                                 cudaDataType_t bt, int ldb, long long sb, const void* beta, void* c, cudaDataType_t ct,
                                                 int ldc, long long sc, int batches, Compute compute, cublasGemmAlgo_t) {
  return harness_emulator::multiply(ta, tb, m, n, k, harness_emulator::read_scalar(alpha, compute), a, at, lda, sa, b, bt, ldb, sb,
                                    harness_emulator::read_scalar(beta, compute), c, ct, ldc, sc, batches);
}
inline cublasStatus_t cublasSgemmEx(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const float* alpha,
                                    const void* a, cudaDataType_t at, int lda, const void* b, cudaDataType_t bt, int ldb,
                                    const float* beta, void* c, cudaDataType_t ct, int ldc) {
  return harness_emulator::multiply(ta, tb, m, n, k, double(*alpha), a, at, lda, 0, b, bt, ldb, 0, double(*beta), c, ct, ldc, 0, 1);
}
inline cublasStatus_t cublasSgemmBatched(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                                         const float* alpha, const float* const a[], int lda, const float* const b[], int ldb,
                                         const float* beta, float* const c[], int ldc, int batches) {
  for (int i = 0; i < batches; ++i) {
    const cublasStatus_t status = cublasSgemm(handle, ta, tb, m, n, k, alpha, a[i], lda, b[i], ldb, beta, c[i], ldc);
    if (status != CUBLAS_STATUS_SUCCESS) { return status; }
  }
  return CUBLAS_STATUS_SUCCESS;
}

namespace harness_emulator __attribute__((visibility("hidden"))) {
template <typename T>
at::Tensor view_vector(const T* x, int64_t count, int64_t step) {
  return at::from_blob(const_cast<T*>(x), {count}, {step}, at::TensorOptions().dtype(c10::CppTypeToScalarType<T>::value));
}
template <typename T>
at::Tensor view_matrix(const T* a, int64_t rows, int64_t columns, int64_t leading) {
  return at::from_blob(const_cast<T*>(a), {rows, columns}, {1, leading}, at::TensorOptions().dtype(c10::CppTypeToScalarType<T>::value));
}
inline at::Tensor apply(cublasOperation_t op, const at::Tensor& a) { return op == CUBLAS_OP_N ? a : a.t(); }
inline void join_into(at::Tensor out, const at::Tensor& product, double alpha, double beta) {
  at::Tensor result = product * alpha;
  if (beta != 0.0) { result = result + out * beta; }
  out.copy_(result);
}
inline at::Tensor take_triangle(const at::Tensor& a, cublasFillMode_t part, cublasDiagType_t diagonal) {
  at::Tensor found = part == CUBLAS_FILL_MODE_LOWER ? a.tril() : a.triu();
  if (diagonal == CUBLAS_DIAG_UNIT) { found.diagonal().fill_(1); }
  return found;
}
inline at::Tensor take_symmetric(const at::Tensor& a, cublasFillMode_t part) {
  const at::Tensor half = part == CUBLAS_FILL_MODE_LOWER ? a.tril() : a.triu();
  return half + half.t() - at::diag(a.diagonal());
}
inline void keep_triangle(at::Tensor out, const at::Tensor& full, cublasFillMode_t part) {
  const at::Tensor ones = at::ones_like(full);
  const at::Tensor mask = part == CUBLAS_FILL_MODE_LOWER ? ones.tril() : ones.triu();
  out.copy_(at::where(mask > 0, full, out));
}
}
#define HARNESS_BLAS(Name, T)                                                                                                    \
  inline cublasStatus_t cublas##Name##gemv(cublasHandle_t, cublasOperation_t t, int m, int n, const T* alpha, const T* a, int lda, \
                                           const T* x, int xs, const T* beta, T* y, int ys) {                                    \
    using namespace harness_emulator;                                                                                            \
    const at::Tensor matrix = ::harness_emulator::apply(t, view_matrix(a, m, n, lda));                                           \
    join_into(view_vector(y, matrix.size(0), ys), at::mv(matrix, view_vector(x, matrix.size(1), xs)), double(*alpha), double(*beta)); \
    return CUBLAS_STATUS_SUCCESS;                                                                                                \
  }                                                                                                                              \
  inline cublasStatus_t cublas##Name##ger(cublasHandle_t, int m, int n, const T* alpha, const T* x, int xs, const T* y, int ys, T* a, int lda) { \
    using namespace harness_emulator;                                                                                            \
    join_into(view_matrix(a, m, n, lda), at::outer(view_vector(x, m, xs), view_vector(y, n, ys)), double(*alpha), 1.0);          \
    return CUBLAS_STATUS_SUCCESS;                                                                                                \
  }                                                                                                                              \
  inline cublasStatus_t cublas##Name##symm(cublasHandle_t, cublasSideMode_t side, cublasFillMode_t part, int m, int n, const T* alpha, \
                                           const T* a, int lda, const T* b, int ldb, const T* beta, T* c, int ldc) {             \
    using namespace harness_emulator;                                                                                            \
    const int order = side == CUBLAS_SIDE_LEFT ? m : n;                                                                          \
    const at::Tensor whole = take_symmetric(view_matrix(a, order, order, lda), part), other = view_matrix(b, m, n, ldb);         \
    join_into(view_matrix(c, m, n, ldc), side == CUBLAS_SIDE_LEFT ? at::matmul(whole, other) : at::matmul(other, whole), double(*alpha), double(*beta)); \
    return CUBLAS_STATUS_SUCCESS;                                                                                                \
  }                                                                                                                              \
  inline cublasStatus_t cublas##Name##trmm(cublasHandle_t, cublasSideMode_t side, cublasFillMode_t part, cublasOperation_t t,    \
                                           cublasDiagType_t diagonal, int m, int n, const T* alpha, const T* a, int lda, const T* b, \
                                           int ldb, T* c, int ldc) {                                                             \
    using namespace harness_emulator;                                                                                            \
    const int order = side == CUBLAS_SIDE_LEFT ? m : n;                                                                          \
    const at::Tensor triangle = ::harness_emulator::apply(t, take_triangle(view_matrix(a, order, order, lda), part, diagonal));  \
    const at::Tensor other = view_matrix(b, m, n, ldb);                                                                          \
    join_into(view_matrix(c, m, n, ldc), side == CUBLAS_SIDE_LEFT ? at::matmul(triangle, other) : at::matmul(other, triangle), double(*alpha), 0.0); \
    return CUBLAS_STATUS_SUCCESS;                                                                                                \
  }                                                                                                                              \
  inline cublasStatus_t cublas##Name##syrk(cublasHandle_t, cublasFillMode_t part, cublasOperation_t t, int n, int k, const T* alpha, \
                                           const T* a, int lda, const T* beta, T* c, int ldc) {                                  \
    using namespace harness_emulator;                                                                                            \
    const bool plain = t == CUBLAS_OP_N;                                                                                         \
    const at::Tensor matrix = ::harness_emulator::apply(t, view_matrix(a, plain ? n : k, plain ? k : n, lda));                   \
    const at::Tensor out = view_matrix(c, n, n, ldc), full = at::matmul(matrix, matrix.t()) * double(*alpha);                    \
    keep_triangle(out, *beta == T(0) ? full : full + out * double(*beta), part);                                                 \
    return CUBLAS_STATUS_SUCCESS;                                                                                                \
  }                                                                                                                              \
  inline cublasStatus_t cublas##Name##geam(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, const T* alpha, \
                                           const T* a, int lda, const T* beta, const T* b, int ldb, T* c, int ldc) {             \
    using namespace harness_emulator;                                                                                            \
    const auto view = [&](cublasOperation_t t, const T* p, int leading) {                                                        \
      return ::harness_emulator::apply(t, t == CUBLAS_OP_N ? view_matrix(p, m, n, leading) : view_matrix(p, n, m, leading));     \
    };                                                                                                                           \
    at::Tensor result = at::zeros({m, n}, at::TensorOptions().dtype(c10::CppTypeToScalarType<T>::value));                        \
    if (*alpha != T(0)) { result = result + view(ta, a, lda) * double(*alpha); }                                                 \
    if (*beta != T(0)) { result = result + view(tb, b, ldb) * double(*beta); }                                                   \
    view_matrix(c, m, n, ldc).copy_(result);                                                                                     \
    return CUBLAS_STATUS_SUCCESS;                                                                                                \
  }                                                                                                                              \
  inline cublasStatus_t cublas##Name##axpy(cublasHandle_t, int n, const T* alpha, const T* x, int xs, T* y, int ys) {            \
    using namespace harness_emulator;                                                                                            \
    view_vector(y, n, ys).add_(view_vector(x, n, xs), double(*alpha));                                                           \
    return CUBLAS_STATUS_SUCCESS;                                                                                                \
  }                                                                                                                              \
  inline cublasStatus_t cublas##Name##scal(cublasHandle_t, int n, const T* alpha, T* x, int xs) {                                \
    harness_emulator::view_vector(x, n, xs).mul_(double(*alpha));                                                                \
    return CUBLAS_STATUS_SUCCESS;                                                                                                \
  }                                                                                                                              \
  inline cublasStatus_t cublas##Name##copy(cublasHandle_t, int n, const T* x, int xs, T* y, int ys) {                            \
    harness_emulator::view_vector(y, n, ys).copy_(harness_emulator::view_vector(x, n, xs));                                      \
    return CUBLAS_STATUS_SUCCESS;                                                                                                \
  }                                                                                                                              \
  inline cublasStatus_t cublas##Name##dot(cublasHandle_t, int n, const T* x, int xs, const T* y, int ys, T* result) {            \
    *result = at::dot(harness_emulator::view_vector(x, n, xs), harness_emulator::view_vector(y, n, ys)).template item<T>();      \
    return CUBLAS_STATUS_SUCCESS;                                                                                                \
  }                                                                                                                              \
  inline cublasStatus_t cublas##Name##nrm2(cublasHandle_t, int n, const T* x, int xs, T* result) {                               \
    *result = harness_emulator::view_vector(x, n, xs).norm().template item<T>();                                                 \
    return CUBLAS_STATUS_SUCCESS;                                                                                                \
  }                                                                                                                              \
  inline cublasStatus_t cublas##Name##asum(cublasHandle_t, int n, const T* x, int xs, T* result) {                               \
    *result = harness_emulator::view_vector(x, n, xs).abs().sum().template item<T>();                                            \
    return CUBLAS_STATUS_SUCCESS;                                                                                                \
  }
HARNESS_BLAS(S, float)
HARNESS_BLAS(D, double)
#undef HARNESS_BLAS
inline cublasStatus_t cublasIsamax(cublasHandle_t, int n, const float* x, int xs, int* result) {
  *result = int(harness_emulator::view_vector(x, n, xs).abs().argmax().item<int64_t>()) + 1;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasGetStream(cublasHandle_t, cudaStream_t* stream) { *stream = nullptr; return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetWorkspace(cublasHandle_t, void*, size_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetAtomicsMode(cublasHandle_t, cublasAtomicsMode_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasGetPointerMode(cublasHandle_t, cublasPointerMode_t* mode) { *mode = CUBLAS_POINTER_MODE_HOST; return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) { *version = 120800; return CUBLAS_STATUS_SUCCESS; }
inline const char* cublasGetStatusString(cublasStatus_t status) { return status == CUBLAS_STATUS_SUCCESS ? "success" : "a cuBLAS call failed"; }
inline const char* cublasGetStatusName(cublasStatus_t status) { return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_FAILED"; }
#define cublasCreate_v2 cublasCreate
#define cublasDestroy_v2 cublasDestroy
#define cublasSetStream_v2 cublasSetStream
#define cublasSgemm_v2 cublasSgemm
