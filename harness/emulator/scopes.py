"""Parses functions and variables of namespaces; finds kernels that can run as a loop. `hidden`: in macros."""

from dataclasses import dataclass, field

from harness.syntax.cpp import (
    LAUNCH_BOUNDS,
    Token,
    find_directive_end,
    list_texts,
    match_forward,
    skip_template_arguments,
    step,
    step_over,
    text_at,
)

_RECORDS = frozenset({"struct", "union", "class", "enum"})
_SIDES = frozenset({"__device__", "__global__", "__constant__", "__managed__", "__shared__"})
# Words before parentheses in the head of a function that are not its name.
NO_NAMES = LAUNCH_BOUNDS | frozenset({
    "__attribute__", "__align__", "alignas", "decltype", "enable_if_t", "noexcept", "__declspec", "requires",
    "__maxnreg__", "__cluster_dims__", "__block_size__", "explicit", "sizeof",
})  # fmt: skip
_NO_VARIABLES = frozenset({"using", "typedef", "template", "friend", "namespace", "extern", "static_assert", "return"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """`at` is the token of the name; `words` precede it; `body` is the braces, if any."""

    name: str
    at: int
    words: frozenset[str]
    parameters: tuple[str, ...]
    body: tuple[int, int] | None

    @property
    def is_kernel(self) -> bool:
        return "__global__" in self.words

    @property
    def is_for_host_only(self) -> bool:
        return not self.words & {"__device__", "__global__", "constexpr", "consteval"}

    @property
    def is_for_device_only(self) -> bool:
        return "__device__" in self.words and not self.words & {"__host__", "constexpr", "consteval"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    name: str
    words: frozenset[str]
    is_constant: bool
    is_array: bool


@dataclass(slots=True)
class Scope:
    functions: dict[str, list[Function]] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    macros: frozenset[str] = frozenset()
    constants: set[str] = field(default_factory=set)  # scalars in constant memory
    records: list[tuple[int, int]] = field(default_factory=list)


def read_scope(tokens: list[Token]) -> Scope:
    hidden = {token.text for token in tokens if token.directive < 0 and token.kind == "word"}
    bodies = find_macros(tokens)
    for name, positions in bodies.items():
        hidden |= {name, *(tokens[at].text for body in positions for at in body)}
    scope = Scope(hidden=hidden, macros=frozenset(bodies))
    at = step(tokens, -1) if tokens else None
    while at is not None:
        at = _read_declaration(tokens, at, scope)
    return scope


def find_macros(tokens: list[Token]) -> dict[str, list[range]]:
    found: dict[str, list[range]] = {}
    for at, token in enumerate(tokens):
        if token.text != "define" or token.directive <= 0:
            continue
        name = step(tokens, at)
        if name is None:
            continue
        found.setdefault(tokens[name].text, []).append(range(name + 1, find_directive_end(tokens, name)))
    return found


def _read_declaration(tokens: list[Token], first: int, scope: Scope) -> int | None:
    where: int | None = first
    groups: list[tuple[int, int]] = []  # parentheses
    while where is not None:
        text = tokens[where].text
        if text in (";", "}"):
            _take(tokens, first, where, groups, scope)
            return step(tokens, where)
        if text == "{":
            return _read_braces(tokens, first, where, groups, scope)
        if text in ("(", "["):
            closing = match_forward(tokens, where)
            if closing is None:
                return None
            if text == "(":
                groups.append((where, closing))
            where = closing
        where = step(tokens, where)
    return None


def _read_braces(
    tokens: list[Token], first: int, opening: int, groups: list[tuple[int, int]], scope: Scope
) -> int | None:
    words = list_texts(tokens, first, opening)
    closing = match_forward(tokens, opening)
    if words[:1] == ["namespace"] or words[:2] in (["inline", "namespace"], ["extern", '"C"']):
        return step(tokens, opening)
    if closing is None:
        return None
    if _RECORDS & set(words):
        scope.records.append((opening, closing))
    if not groups or "=" in words or _RECORDS & set(words[:1]):
        return _skip_statement(tokens, first, closing, scope)
    if ":" in words:  # such as a constructor's initializers
        return step(tokens, closing)
    _take(tokens, first, opening, groups, scope)
    return step(tokens, closing)


def _skip_statement(tokens: list[Token], first: int, closing: int, scope: Scope) -> int | None:
    where = step(tokens, closing)
    while where is not None and tokens[where].text != ";":
        where = step(tokens, match_forward(tokens, where) if tokens[where].text in ("(", "[", "{") else where)
    if where is not None:
        _take_variable(tokens, first, where, scope)
    return step(tokens, where)


def _take(tokens: list[Token], first: int, end: int, groups: list[tuple[int, int]], scope: Scope) -> None:
    """Read a declaration that ends at a semicolon, or at the brace of its body."""
    named = [
        (word, pair) for pair in groups if (word := step(tokens, pair[0], -1)) is not None and word >= first
        and tokens[word].kind == "word" and tokens[word].text not in NO_NAMES
    ]  # fmt: skip
    texts = list_texts(tokens, first, end)
    if not named:
        _take_variable(tokens, first, end, scope)
        return
    name, (opening, closing) = named[0]
    if text_at(tokens, step(tokens, opening)) in ("*", "&"):  # a pointer to a function: `float (*f)(float)`
        return
    before = list_texts(tokens, first, name)
    is_macro = len(named) > 1 or not before or tokens[name].text.isupper()
    if is_macro or "=" in before or "operator" in before or before[-1:] == ["::"]:
        scope.hidden.update(texts if is_macro else ())
        return
    last = match_forward(tokens, end) if tokens[end].text == "{" else None
    function = Function(
        name=tokens[name].text,
        at=name,
        words=frozenset(before),
        parameters=tuple(token.text for token in tokens[opening + 1 : closing] if not token.is_blank),
        body=None if last is None else (end, last),
    )
    scope.functions.setdefault(function.name, []).append(function)


def _take_variable(tokens: list[Token], first: int, end: int, scope: Scope) -> None:
    """Read `static const float a = 1` or `int b[2]`; several declarators are ignored."""
    texts = list_texts(tokens, first, end)
    stop = next((at for at, text in enumerate(texts) if text in ("=", "[", "{", "(")), len(texts))
    head = texts[:stop]
    if len(head) < 2 or not all(text.isidentifier() or text == "*" for text in head) or head[0] in _NO_VARIABLES:
        return
    if _is_list(texts[stop:]):
        return
    words, is_array = frozenset(head[:-1]), texts[stop : stop + 1] == ["["]
    if "__constant__" in words and not is_array:
        scope.constants.add(head[-1])
    if words & (_SIDES | _RECORDS):
        return
    is_constant = "constexpr" in words or ("const" in words and "*" not in head)
    scope.variables[head[-1]] = Variable(name=head[-1], words=words, is_constant=is_constant, is_array=is_array)


def _is_list(texts: list[str]) -> bool:
    depth = 0
    for text in texts:
        depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
        if text == "," and depth == 0:
            return True
    return False


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
            after = skip_template_arguments(self._tokens, after)
        return text_at(self._tokens, after) in ("(", "{")

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
        opening = step_over(tokens, match_forward(tokens, at), ("const", "noexcept"))
        if word is None or opening is None or tokens[word].kind != "word" or tokens[opening].text != "{":
            continue
        if text_at(tokens, step(tokens, word, -1)) in ("{", "}", ";", ")"):
            continue  # a loop opened by a macro
        end = match_forward(tokens, opening)
        if end is not None and tokens[word].text not in _KEYWORDS:
            found.setdefault(tokens[word].text, []).append(range(opening + 1, end))
    return found
