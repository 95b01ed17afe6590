"""Finds kernels that can run as a plain loop over threads: no synchronisation or communication."""

from __future__ import annotations

from harness.emulator.scopes import find_macros
from harness.syntax.cpp import Token, match_forward, step, text_at

_INDICES = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim"})
_KEYWORDS = frozenset({
    "if", "for", "while", "switch", "return", "sizeof", "static_cast", "reinterpret_cast", "const_cast", "int", "float",
    "double", "bool", "char", "long", "short", "unsigned", "signed", "size_t", "int64_t", "int32_t", "uint32_t",
    "uint64_t", "int8_t", "uint8_t", "int16_t", "uint16_t", "scalar_t", "T", "alignof", "defined", "else", "do",
})  # fmt: skip
_FLOAT_MATH = (
    "exp exp2 exp10 expm1 log log2 log10 log1p sqrt rsqrt cbrt sin cos tan asin acos atan sinh cosh tanh asinh acosh "
    "atanh erf erfc tgamma lgamma fabs floor ceil trunc round rint nearbyint pow fmod fma fmin fmax atan2 hypot "
    "copysign fdim isnan isinf isfinite abs max min signbit ldexp"
)
_INTRINSICS = (
    "__expf __exp10f __logf __log2f __log10f __sinf __cosf __tanf __powf __fdividef __frcp_rn __fsqrt_rn "
    "__fmaf_rn __fadd_rn __fmul_rn __fdiv_rn __frsqrt_rn __saturatef __ldg __ldcs __ldca __ldcg __stcs __stcg "
    "__stwb __stwt __float2half __half2float __float2half_rn __float2bfloat16 __bfloat162float __hadd __hmul "
    "__hfma __hsub __hmax __hmin __int_as_float __float_as_int __uint_as_float __float_as_uint __float2int_rn "
    "__float2int_rd __int2float_rn make_float2 make_float3 make_float4 make_int2 make_int4 make_uint2 make_uint4 "
    "make_double2 float2 float4 int4 int2 __popc __clz __ffs __brev __umulhi __mulhi __mul24 __half half "
    "__nv_bfloat16 uint2 uint4 double2 double4 int3 float3 "
)
_SAFE = frozenset(
    (*_KEYWORDS, *_FLOAT_MATH.split(), *(f"{name}f" for name in _FLOAT_MATH.split()), *_INTRINSICS.split())
)
_UNSAFE = frozenset({"asm", "__asm__", "__asm", "__shared__", "goto", "clock", "clock64", "assert", "printf", "new"})


class SimpleKernels:
    def __init__(self, tokens: list[Token], checked: bool) -> None:
        self._tokens = tokens
        self._checked = checked
        self._bodies = {} if checked else {**_find_functions(tokens), **find_macros(tokens)}
        self._known: dict[str, bool] = {}

    def is_simple(self, opening: int, closing: int) -> bool:
        """Return False in checked builds, where findings name threads, and for kernels defined by macros."""
        return (
            not self._checked
            and not self._tokens[opening].directive
            and self._is_harmless(range(opening + 1, closing), is_kernel=True)
        )

    def _is_harmless(self, positions: range, *, is_kernel: bool) -> bool:
        for at in positions:
            token = self._tokens[at]
            if token.text == "[" and is_kernel and self._begins_lambda(at):
                return False
            if token.kind == "word" and not self._is_harmless_word(at, is_kernel):
                return False
            if token.text == "#" and token.directive and is_kernel:
                return False
        return True

    def _is_harmless_word(self, at: int, is_kernel: bool) -> bool:
        word = self._tokens[at].text
        if word in _INDICES:
            return is_kernel
        if word in _UNSAFE or word.startswith("__sync"):
            return False
        if word in self._bodies:
            return self._is_harmless_name(word)
        return word in _SAFE or not self._is_called(at)

    def _is_harmless_name(self, word: str) -> bool:
        if word not in self._known:
            self._known[word] = False  # recursive functions are not simple
            self._known[word] = all(self._is_harmless(positions, is_kernel=False) for positions in self._bodies[word])
        return self._known[word]

    def _is_called(self, at: int) -> bool:
        after = step(self._tokens, at)
        if text_at(self._tokens, after) == "<":
            after = self._skip_template_arguments(after)
        return text_at(self._tokens, after) in ("(", "{")

    def _skip_template_arguments(self, at: int | None) -> int | None:
        """Return the index after `>`; None if `<` is a comparison."""
        angles, where = 0, at
        while where is not None and self._tokens[where].text not in (";", "{", "(", "&&", "||"):
            angles += (self._tokens[where].text == "<") - (self._tokens[where].text == ">")
            where = step(self._tokens, where)
            if angles == 0:
                return where
        return None

    def _begins_lambda(self, at: int) -> bool:
        before = step(self._tokens, at, -1)
        return before is None or not (
            self._tokens[before].kind in ("word", "string") or self._tokens[before].text in (")", "]")
        )


def _find_functions(tokens: list[Token]) -> dict[str, list[range]]:
    found: dict[str, list[range]] = {}
    for at, token in enumerate(tokens):
        if token.text != "(" or token.directive:
            continue
        word = step(tokens, at, -1)
        opening = step(tokens, match_forward(tokens, at))
        while text_at(tokens, opening) in ("const", "noexcept"):
            opening = step(tokens, opening)
        if word is None or opening is None or tokens[word].kind != "word" or tokens[opening].text != "{":
            continue
        if text_at(tokens, step(tokens, word, -1)) in ("{", "}", ";", ")"):
            continue  # a loop opened by a macro
        end = match_forward(tokens, opening)
        if end is not None and tokens[word].text not in _KEYWORDS:
            found.setdefault(tokens[word].text, []).append(range(opening + 1, end))
    return found
