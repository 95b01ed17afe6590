// What half and bfloat16 have in common. No guard: included once for each, with HARNESS_S and HARNESS_S2 the types.

#define HARNESS_OP(Op)                                                                        \
  inline HARNESS_S operator Op(const HARNESS_S& a, const HARNESS_S& b) { return HARNESS_S(float(a) Op float(b)); } \
  inline HARNESS_S& operator Op##=(HARNESS_S& a, const HARNESS_S& b) { return a = a Op b; }   \
  inline HARNESS_S2 operator Op(const HARNESS_S2& a, const HARNESS_S2& b) { return {a.x Op b.x, a.y Op b.y}; } \
  inline HARNESS_S2& operator Op##=(HARNESS_S2& a, const HARNESS_S2& b) { return a = a Op b; }
HARNESS_OP(+)
HARNESS_OP(-)
HARNESS_OP(*)
HARNESS_OP(/)
#undef HARNESS_OP
inline HARNESS_S operator-(const HARNESS_S& a) { return HARNESS_S::harness_make(static_cast<unsigned short>(a.harness_bits() ^ 0x8000u)); }
inline HARNESS_S operator+(const HARNESS_S& a) { return a; }
inline HARNESS_S2 operator-(const HARNESS_S2& a) { return {-a.x, -a.y}; }
inline HARNESS_S& operator++(HARNESS_S& a) { return a += HARNESS_S(1.0f); }
inline HARNESS_S& operator--(HARNESS_S& a) { return a -= HARNESS_S(1.0f); }

#define HARNESS_COMPARE(Op, Name)                                                                                  \
  inline bool operator Op(const HARNESS_S& a, const HARNESS_S& b) { return float(a) Op float(b); }                 \
  inline bool __h##Name(HARNESS_S a, HARNESS_S b) { return float(a) Op float(b); }                                 \
  inline bool __hb##Name##2(HARNESS_S2 a, HARNESS_S2 b) { return (a.x Op b.x) && (a.y Op b.y); }                   \
  inline HARNESS_S2 __h##Name##2(HARNESS_S2 a, HARNESS_S2 b) {                                                     \
    return {HARNESS_S(a.x Op b.x ? 1.0f : 0.0f), HARNESS_S(a.y Op b.y ? 1.0f : 0.0f)};                             \
  }
HARNESS_COMPARE(==, eq)
HARNESS_COMPARE(!=, ne)
HARNESS_COMPARE(<, lt)
HARNESS_COMPARE(>, gt)
HARNESS_COMPARE(<=, le)
HARNESS_COMPARE(>=, ge)
#undef HARNESS_COMPARE

inline HARNESS_S __hadd(HARNESS_S a, HARNESS_S b) { return a + b; }
inline HARNESS_S __hsub(HARNESS_S a, HARNESS_S b) { return a - b; }
inline HARNESS_S __hmul(HARNESS_S a, HARNESS_S b) { return a * b; }
inline HARNESS_S __hadd_rn(HARNESS_S a, HARNESS_S b) { return a + b; }
inline HARNESS_S __hsub_rn(HARNESS_S a, HARNESS_S b) { return a - b; }
inline HARNESS_S __hmul_rn(HARNESS_S a, HARNESS_S b) { return a * b; }
inline HARNESS_S __hdiv(HARNESS_S a, HARNESS_S b) { return a / b; }
inline HARNESS_S __hneg(HARNESS_S a) { return -a; }
inline HARNESS_S __habs(HARNESS_S a) { return HARNESS_S::harness_make(a.harness_bits() & 0x7fffu); }
inline HARNESS_S __hfma(HARNESS_S a, HARNESS_S b, HARNESS_S c) { return HARNESS_S(double(a) * double(b) + double(c)); }
inline HARNESS_S __hfma_relu(HARNESS_S a, HARNESS_S b, HARNESS_S c) {
  const HARNESS_S r = __hfma(a, b, c);
  return float(r) > 0.0f ? r : HARNESS_S(0.0f);
}
inline HARNESS_S __hmax(HARNESS_S a, HARNESS_S b) { return HARNESS_S(::fmaxf(float(a), float(b))); }
inline HARNESS_S __hmin(HARNESS_S a, HARNESS_S b) { return HARNESS_S(::fminf(float(a), float(b))); }
inline HARNESS_S __hmax_nan(HARNESS_S a, HARNESS_S b) { return float(a) != float(a) ? a : float(b) != float(b) ? b : __hmax(a, b); }
inline HARNESS_S __hmin_nan(HARNESS_S a, HARNESS_S b) { return float(a) != float(a) ? a : float(b) != float(b) ? b : __hmin(a, b); }
inline HARNESS_S __hadd_sat(HARNESS_S a, HARNESS_S b) { return HARNESS_S(saturate(float(a + b))); }
inline HARNESS_S __hmul_sat(HARNESS_S a, HARNESS_S b) { return HARNESS_S(saturate(float(a * b))); }
inline bool __hisnan(HARNESS_S a) { return float(a) != float(a); }
inline int __hisinf(HARNESS_S a) { return std::isinf(float(a)) ? (float(a) > 0 ? 1 : -1) : 0; }

inline HARNESS_S2 __hadd2(HARNESS_S2 a, HARNESS_S2 b) { return a + b; }
inline HARNESS_S2 __hsub2(HARNESS_S2 a, HARNESS_S2 b) { return a - b; }
inline HARNESS_S2 __hmul2(HARNESS_S2 a, HARNESS_S2 b) { return a * b; }
inline HARNESS_S2 __hadd2_rn(HARNESS_S2 a, HARNESS_S2 b) { return a + b; }
inline HARNESS_S2 __hmul2_rn(HARNESS_S2 a, HARNESS_S2 b) { return a * b; }
inline HARNESS_S2 __h2div(HARNESS_S2 a, HARNESS_S2 b) { return a / b; }
inline HARNESS_S2 __hneg2(HARNESS_S2 a) { return -a; }
inline HARNESS_S2 __habs2(HARNESS_S2 a) { return {__habs(a.x), __habs(a.y)}; }
inline HARNESS_S2 __hfma2(HARNESS_S2 a, HARNESS_S2 b, HARNESS_S2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
inline HARNESS_S2 __hmax2(HARNESS_S2 a, HARNESS_S2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }
inline HARNESS_S2 __hmin2(HARNESS_S2 a, HARNESS_S2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }
inline HARNESS_S HARNESS_NAME(__low2, )(HARNESS_S2 a) { return a.x; }
inline HARNESS_S HARNESS_NAME(__high2, )(HARNESS_S2 a) { return a.y; }
inline HARNESS_S2 HARNESS_NAME(__low2, 2)(HARNESS_S2 a) { return {a.x, a.x}; }
inline HARNESS_S2 HARNESS_NAME(__high2, 2)(HARNESS_S2 a) { return {a.y, a.y}; }
inline HARNESS_S2 __lowhigh2highlow(HARNESS_S2 a) { return {a.y, a.x}; }
inline HARNESS_S2 HARNESS_NAME(__lows2, 2)(HARNESS_S2 a, HARNESS_S2 b) { return {a.x, b.x}; }
inline HARNESS_S2 HARNESS_NAME(__highs2, 2)(HARNESS_S2 a, HARNESS_S2 b) { return {a.y, b.y}; }

#define HARNESS_MATH(Name, Function)                                                      \
  inline HARNESS_S h##Name(HARNESS_S a) { return HARNESS_S(Function(float(a))); }         \
  inline HARNESS_S2 h2##Name(HARNESS_S2 a) { return {h##Name(a.x), h##Name(a.y)}; }
HARNESS_MATH(exp, ::expf)
HARNESS_MATH(exp2, ::exp2f)
HARNESS_MATH(exp10, ::exp10f)
HARNESS_MATH(log, ::logf)
HARNESS_MATH(log2, ::log2f)
HARNESS_MATH(log10, ::log10f)
HARNESS_MATH(sqrt, ::sqrtf)
HARNESS_MATH(rsqrt, ::rsqrtf)
HARNESS_MATH(rcp, 1.0f /)
HARNESS_MATH(sin, ::sinf)
HARNESS_MATH(cos, ::cosf)
HARNESS_MATH(tanh, ::tanhf)
HARNESS_MATH(floor, ::floorf)
HARNESS_MATH(ceil, ::ceilf)
HARNESS_MATH(trunc, ::truncf)
HARNESS_MATH(rint, ::rintf)
#undef HARNESS_MATH

inline HARNESS_S __ldg(const HARNESS_S* address) { return *address; }
inline HARNESS_S2 __ldg(const HARNESS_S2* address) { return *address; }
inline HARNESS_S atomicAdd(HARNESS_S* address, HARNESS_S value) {
  return harness_emulator::change_atomically(address, [value](HARNESS_S old) { return old + value; });
}
inline HARNESS_S2 atomicAdd(HARNESS_S2* address, HARNESS_S2 value) {
  return harness_emulator::change_atomically(address, [value](HARNESS_S2 old) { return old + value; });
}
#define HARNESS_SMALL_SHUFFLE(Name, Run, Argument)                                                               \
  inline HARNESS_S Name(unsigned mask, HARNESS_S value, Argument argument, int width = 32, HARNESS_LINE) {       \
    return harness_emulator::Run(mask, value, argument, width, harness_line);                                    \
  }                                                                                                              \
  inline HARNESS_S2 Name(unsigned mask, HARNESS_S2 value, Argument argument, int width = 32, HARNESS_LINE) {     \
    return harness_emulator::Run(mask, value, argument, width, harness_line);                                    \
  }
HARNESS_SMALL_SHUFFLE(__shfl_sync, shuffle, int)
HARNESS_SMALL_SHUFFLE(__shfl_up_sync, shuffle_up, unsigned)
HARNESS_SMALL_SHUFFLE(__shfl_down_sync, shuffle_down, unsigned)
HARNESS_SMALL_SHUFFLE(__shfl_xor_sync, shuffle_xor, int)
#undef HARNESS_SMALL_SHUFFLE
