"""Makes the host compiler refuse code that only nvcc refuses.

Device function bodies are preceded by unusable declarations of host-only names; the compiler handles scopes and
shadowing. Ambiguous names are left unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harness.emulator.scopes import NO_NAMES, Function, Scope, read_scope
from harness.syntax.cpp import Token, match_forward, skip_template_arguments, step, text_at

_CONTROL = frozenset({"return", "else", "do", "case", "co_return", "throw"})
_OTHERS_TYPES = frozenset({"torch", "at", "c10", "std", "py", "pybind11", "Tensor", "auto", "thrust"})
_SCALARS = frozenset({
    "int", "unsigned", "long", "short", "char", "size_t", "int64_t", "int32_t", "uint32_t", "uint64_t", "float",
    "double", "bool", "half", "__half", "uint8_t", "int8_t",
})  # fmt: skip
_INTEGERS = (_SCALARS - {"float", "double", "half", "__half"}) | {"const", "uint"}
# CUDA functions in the global namespace; a function of that name may be an overload.
_MATH = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi erf erfc erfcinv erfcx erfinv exp exp10 exp2
expm1 fabs fdim fdivide floor fma fmax fmin fmod frexp hypot ilogb isfinite isinf isnan j0 j1 jn ldexp lgamma llrint
llround log log10 log1p log2 logb lrint lround max min modf nearbyint nextafter norm norm3d norm4d normcdf normcdfinv
pow rcbrt remainder remquo rhypot rint rnorm rnorm3d rnorm4d round rsqrt saturate scalbln scalbn signbit sin sincos
sincospi sinh sinpi sqrt tan tanh tgamma trunc y0 y1 yn abs labs llabs umin umax llmin llmax ullmin ullmax malloc free
memcpy memset printf assert clock clock64 cyl_bessel_i0 cyl_bessel_i1 operator swap
"""
_CUDAS_NAME = re.compile(rf"__\w+|make_\w+|atomic\w+|tex\w+|surf\w+|(?:{'|'.join(_MATH.split())})f?")
# Device-only functions.
_DEVICES_OWN = re.compile(
    r"__sync(threads|warp)\w*|__shfl_\w+|__(ballot|any|all|match_any|match_all)_sync|__activemask|__threadfence\w*|"
    r"__(exp|log|sin|cos|pow|tan)f|__fdividef|__ldg|atomic(Add|Sub|Max|Min|CAS|Exch|And|Or|Xor)"
)
# Parts of the standard library that are host-only under any flags.
_HOST_LIBRARY = frozenset({
    "cout", "cerr", "endl", "to_string", "map", "unordered_map", "set", "unordered_set", "deque", "list", "queue",
    "stack", "function", "shared_ptr", "make_shared", "unique_ptr", "make_unique", "stringstream", "ostringstream",
    "mutex", "mt19937", "random_device", "rand", "thread", "chrono", "ifstream", "ofstream",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    opening: int
    closing: int
    after: str
    before: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    edits: tuple[Edit, ...]
    errors: tuple[tuple[int, str], ...]


def find_errors(tokens: list[Token], *, extended_lambdas: bool = True) -> Errors:
    """nvcc's flag `extended_lambdas` permits device lambdas."""
    scope = read_scope(tokens)
    bodies = list(find_bodies(tokens))
    edits = [edit for body in bodies if not body.is_constexpr for edit in _shadow(tokens, body, scope)]
    edits += [
        Edit(opening=body.opening, closing=body.closing, after=_REFUSE_VARIABLE_LENGTHS, before=_ALLOW_AGAIN)
        for body in bodies if tokens[body.opening].directive == 0
    ]  # fmt: skip
    errors = [error for body in bodies for error in _find_host_only(tokens, body)]
    errors += find_misplaced(tokens, scope.records)
    errors += _find_unconfigured(tokens, scope)
    errors += _find_device_only(tokens, scope)
    errors += _find_assignments(tokens, scope)
    if not extended_lambdas:
        errors += _find_lambdas_for_the_device(tokens)
    return Errors(edits=tuple(edits), errors=tuple(errors))


_REFUSE_VARIABLE_LENGTHS = ' _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic error \\"-Wvla\\"") '
_ALLOW_AGAIN = ' _Pragma("GCC diagnostic pop") '


def _shadow(tokens: list[Token], body: Body, scope: Scope) -> list[Edit]:
    names = {tokens[at].text for at in range(body.opening + 1, body.closing) if _is_used_name(tokens, at)}
    parameters = {token.text for token in tokens[body.parameters[0] : body.parameters[1]]}
    declared = []
    for name in sorted(names - parameters - scope.hidden):
        functions = scope.functions.get(name, ())
        if functions and _are_plainly_the_hosts(functions, scope) and not _CUDAS_NAME.fullmatch(name):
            declared.append(_write_unusable(name, _forbid_host_function(tokens, body, name)))
        elif not functions and name in scope.variables and _is_host_variable(tokens, body, scope, name):
            declared.append(_write_unusable(name, f'identifier "{name}" is undefined in device code'))
    if not declared:
        return []
    return [Edit(opening=body.opening, closing=body.closing, after=f" {' '.join(declared)} {{", before="}")]


def _write_unusable(name: str, message: str) -> str:
    return f"__attribute__((unavailable({json.dumps(message)}))) static ::harness_emulator::NotOnTheDevice {name};"


def _forbid_host_function(tokens: list[Token], body: Body, name: str) -> str:
    side = "__global__" if body.is_kernel else "__device__"
    caller = tokens[body.name].text
    return f'calling a __host__ function("{name}") from a {side} function("{caller}") is not allowed'


def _is_used_name(tokens: list[Token], at: int) -> bool:
    token = tokens[at]
    if token.kind != "word" or token.directive:
        return False
    before = step(tokens, at, -1)
    if text_at(tokens, before) == "(":
        return text_at(tokens, step(tokens, before, -1)) not in ("sizeof", "decltype")
    return text_at(tokens, before) not in (".", "->", "::")


def _are_plainly_the_hosts(functions: list[Function], scope: Scope) -> bool:
    return all(
        function.is_for_host_only
        and not function.words & scope.macros
        and not (set(function.parameters) | function.words) & _OTHERS_TYPES
        and not any(word.isupper() and "_" in word for word in function.words)
        for function in functions
    )


def _is_host_variable(tokens: list[Token], body: Body, scope: Scope, name: str) -> bool:
    """Constant scalars are readable on the device; constant arrays only in constant expressions."""
    variable = scope.variables[name]
    if not variable.words & _SCALARS or variable.words & scope.macros:
        return False
    if not variable.is_constant:
        return True
    return variable.is_array and not any(
        _is_in_constant_expression(tokens, at)
        for at in range(body.opening + 1, body.closing) if tokens[at].text == name
    )  # fmt: skip


def _is_in_constant_expression(tokens: list[Token], at: int) -> bool:
    before = step(tokens, at, -1)
    is_argument = text_at(tokens, before) in ("<", ",")
    while before is not None and tokens[before].text not in (";", "{", "}"):
        if tokens[before].text in ("constexpr", "static_assert"):
            return True
        before = step(tokens, before, -1)
    return is_argument


def _find_host_only(tokens: list[Token], body: Body) -> Iterator[tuple[int, str]]:
    for at in range(body.opening + 1, body.closing):
        token = tokens[at]
        if token.text == "<<<":
            yield at, "kernel launch from __device__ or __global__ functions requires separate compilation mode"
        if token.kind != "word" or token.directive:
            continue
        if token.text in ("throw", "try"):
            yield at, "exception handling is not allowed in device code"
        elif token.text in ("typeid", "dynamic_cast"):
            yield at, f"the operator '{token.text}' is not allowed in device code"
        elif token.text in _HOST_LIBRARY and _follows_std(tokens, at):
            yield at, _forbid_host_function(tokens, body, f"std::{token.text}")


def _follows_std(tokens: list[Token], at: int) -> bool:
    scope = step(tokens, at, -1)
    return text_at(tokens, scope) == "::" and text_at(tokens, step(tokens, scope, -1)) == "std"


def _find_unconfigured(tokens: list[Token], scope: Scope) -> Iterator[tuple[int, str]]:
    for name in _list_names(scope, lambda function: function.is_kernel):
        own = {function.at for function in scope.functions[name]}
        uses = [at for at, token in enumerate(tokens) if token.text == name and not token.directive and at not in own]
        if any(_is_declared(tokens, at) for at in uses):  # by that name also a variable, such as a lambda
            continue
        for at in uses:
            if _is_call(tokens, at):
                yield at, "a __global__ function call must be configured"


def _is_declared(tokens: list[Token], at: int) -> bool:
    before = step(tokens, at, -1)
    return before is not None and tokens[before].kind == "word" and tokens[before].text not in _CONTROL


def _find_device_only(tokens: list[Token], scope: Scope) -> Iterator[tuple[int, str]]:
    """Yield host functions that use device-only features.

    Candidate device functions count only with integer parameters: torch may have overloads for tensors.
    """
    own = set(_list_names(scope, _takes_integers_on_device))
    for function in (function for functions in scope.functions.values() for function in functions):
        if function.body is None or not function.is_for_host_only or function.words & scope.macros:
            continue
        positions = range(function.body[0] + 1, function.body[1])
        if any(tokens[at].text in ("__device__", "__host__") for at in positions):  # a device lambda
            continue
        for at in positions:
            name = tokens[at].text
            if name == "__shared__":
                yield at, 'a static "__shared__" variable declaration is not allowed inside a host function body'
            elif (name in own or _DEVICES_OWN.fullmatch(name)) and name not in scope.hidden and _is_call(tokens, at):
                yield at, _forbid_device_function(function.name, name)


def _forbid_device_function(caller: str, name: str) -> str:
    return f'calling a __device__ function("{name}") from a __host__ function("{caller}") is not allowed'


def _takes_integers_on_device(function: Function) -> bool:
    types = {word for word in function.parameters if word in _SCALARS or not word.isidentifier() or word[0].isupper()}
    return function.is_for_device_only and bool(types) and types <= _INTEGERS | {","}


def _find_assignments(tokens: list[Token], scope: Scope) -> Iterator[tuple[int, str]]:
    for at, token in enumerate(tokens):
        if token.text not in scope.constants or token.directive or not _is_used_name(tokens, at):
            continue
        is_statement = text_at(tokens, step(tokens, at, -1)) in (";", "{", "}", ")")
        if is_statement and text_at(tokens, step(tokens, at)) == "=":
            yield at, "expression must be a modifiable lvalue"


def _find_lambdas_for_the_device(tokens: list[Token]) -> Iterator[tuple[int, str]]:
    for at, token in enumerate(tokens):
        is_side = token.text in ("__device__", "__host__") and not token.directive
        if is_side and text_at(tokens, step(tokens, at, -1)) == "]":
            yield at, "__host__ or __device__ annotation on lambda requires --extended-lambda nvcc flag"


def _list_names(scope: Scope, is_wanted: Callable[[Function], bool]) -> list[str]:
    return [
        name for name, functions in scope.functions.items()
        if name not in scope.hidden and all(map(is_wanted, functions)) and not _CUDAS_NAME.fullmatch(name)
    ]  # fmt: skip


def _is_call(tokens: list[Token], at: int) -> bool:
    """Recognise `name(` or `name<...>(` that is neither a declaration nor a member."""
    if not _is_used_name(tokens, at):
        return False
    after, previous = step(tokens, at), text_at(tokens, step(tokens, at, -1))
    if text_at(tokens, after) == "<":
        after = skip_template_arguments(tokens, after)
    is_declared = _is_declared(tokens, at) or previous in ("*", "&", ">", "&&", "]")
    return not is_declared and text_at(tokens, after) == "("


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """Token indices of a function for the device; `words` are its specifiers and type."""

    name: int
    parameters: tuple[int, int]
    opening: int
    closing: int
    words: tuple[str, ...]

    @property
    def is_kernel(self) -> bool:
        return "__global__" in self.words

    @property
    def is_constexpr(self) -> bool:
        return "constexpr" in self.words or "consteval" in self.words


def find_bodies(tokens: list[Token]) -> Iterator[Body]:
    """Skips `__host__ __device__` functions."""
    for at, token in enumerate(tokens):
        if token.text in ("__global__", "__device__") and token.kind == "word" and not token.directive:
            body = read_body(tokens, at)
            is_second = body is not None and token.text == "__device__" and body.is_kernel
            if body is not None and not is_second and "__host__" not in body.words:
                yield body


def read_body(tokens: list[Token], at: int) -> Body | None:
    """Return None if this specifier is not that of a definition."""
    words, where, group = [*_read_head_before(tokens, at), tokens[at].text], step(tokens, at), None
    name = None
    while where is not None and tokens[where].text not in (";", "{", "}", "=", ":"):
        words.append(tokens[where].text)
        if tokens[where].text == "(":
            closing, word = match_forward(tokens, where), step(tokens, where, -1)
            if closing is None or word is None:
                return None
            if name is None and word > at and tokens[word].text not in NO_NAMES:
                name, group = word, (where, closing)
            where = closing
        where = step(tokens, where)
    if where is None or name is None or group is None or tokens[where].text != "{":
        return None
    closing = match_forward(tokens, where)
    if closing is None or tokens[name].kind != "word":
        return None
    return Body(name=name, parameters=group, opening=where, closing=closing, words=tuple(words))


def _read_head_before(tokens: list[Token], at: int) -> list[str]:
    words = []
    before = step(tokens, at, -1)
    while before is not None and (tokens[before].kind == "word" or tokens[before].text == ">"):
        words.append(tokens[before].text)
        before = step(tokens, before, -1)
    return words


def find_misplaced(tokens: list[Token], records: list[tuple[int, int]]) -> Iterator[tuple[int, str]]:
    """Yield invalid kernel declarations with nvcc's message."""
    for at, token in enumerate(tokens):
        if token.text != "__global__" or token.directive:
            continue
        before = _read_head_before(tokens, at)
        beside = {*before, text_at(tokens, step(tokens, at))}
        if any(low < at < high for low, high in records) and "friend" not in before:
            yield at, "a __global__ function or function template cannot be a member function"
        elif beside & {"__device__", "__host__"}:
            yield at, "illegal combination of memory qualifiers"
        else:
            yield from _find_errors_of_head(tokens, at)


def _find_errors_of_head(tokens: list[Token], at: int) -> Iterator[tuple[int, str]]:
    body = read_body(tokens, at)
    if body is None:
        return
    low, high = body.parameters
    last = step(tokens, high, -1)
    before = text_at(tokens, step(tokens, last, -1))
    if last is not None and tokens[last].text == "..." and before in (",", "("):
        yield last, "a __global__ function cannot have ellipsis"
    behind = [tokens[position].text for position in range(high, body.opening)]
    if "__launch_bounds__" in behind:
        yield low, "attributes are not permitted in a function definition: __launch_bounds__ stands before the name"
    if "auto" in body.words and "->" not in behind:
        yield at, "a __global__ function must not have a deduced return type"
