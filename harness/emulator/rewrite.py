"""Rewrites one CUDA source to C++ against the runtime's headers, keeping line numbers.

    kernel<<<grid, block>>>(x)      (configure(grid, block), kernel(x))
    __global__ void kernel(...) {B} a function that runs B for each thread of the launch
    __shared__ T x[N];              see `shared_memory`
    asm("...")                      see `ptx`
    x.is_cuda(), torch::kCUDA       see `device_queries`

Unsupported constructs are returned as `Problem`s.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from harness.emulator.launches import find_callee, find_chevrons_end, list_pointers, rename_host_names, rewrite_indices
from harness.emulator.nvcc_rules import find_errors, read_body
from harness.emulator.ptx.arithmetic import PtxError
from harness.emulator.ptx.instructions import write_ptx
from harness.emulator.scopes import SimpleKernels
from harness.emulator.shared_memory import read_shared_declaration, write_shared_declaration
from harness.syntax.cpp import (
    LAUNCH_BOUNDS,
    Token,
    find_arguments,
    find_directive_end,
    match_backward,
    match_forward,
    step,
    step_over,
    text_at,
    tokenize,
)

_ASK_ABOUT_KERNELS = frozenset({
    "cudaLaunchKernel", "cudaLaunchCooperativeKernel", "cudaFuncSetAttribute", "cudaFuncGetAttributes",
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor", "cudaOccupancyMaxPotentialBlockSize", "cudaFuncSetCacheConfig",
})  # fmt: skip
_GIVE_MEMORY = frozenset({
    "data_ptr", "mutable_data_ptr", "const_data_ptr", "packed_accessor", "packed_accessor32", "packed_accessor64",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    line: int
    message: str


@dataclass(slots=True)
class Rewrite:
    """`edits` replace tokens; `before` and `after` are inserted around them."""

    tokens: list[Token]
    checked: bool = False
    edits: dict[int, str] = field(default_factory=dict)
    before: dict[int, str] = field(default_factory=dict)
    after: dict[int, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def edit(self, at: int, text: str) -> None:
        self.edits[at] = text

    def blank(self, low: int, high: int) -> None:
        for at in range(low, high + 1):
            token = self.tokens[at]
            self.edits[at] = "\\\n" * token.text.count("\n") if token.directive > 0 else "\n" * token.text.count("\n")

    def put_before(self, at: int, text: str) -> None:
        self.before[at] = text + self.before.get(at, "")

    def put_after(self, at: int, text: str) -> None:
        self.after[at] = self.after.get(at, "") + text

    def render(self, low: int, high: int, *, one_line: bool = False) -> str:
        """Rewritten source of tokens `low` to `high` (exclusive)."""
        return "".join(self._render(at, one_line) for at in range(low, high))

    def _render(self, at: int, one_line: bool) -> str:
        token = self.tokens[at]
        text = self.edits.get(at, token.text)
        if one_line and token.is_blank:
            text = " "
        return f"{self.before.get(at, '')}{text}{self.after.get(at, '')}"

    def edited(self) -> list[Token]:
        return [
            Token(token.kind, self.edits[at], token.line, token.directive) if at in self.edits else token
            for at, token in enumerate(self.tokens)
        ]

    def refuse(self, at: int, message: str) -> None:
        self.problems.append(Problem(line=self.tokens[at].line, message=message))


def rewrite_device_source(
    text: str, *, checked: bool, own_headers: frozenset[str] = frozenset(), extended_lambdas: bool = True
) -> tuple[str, tuple[Problem, ...]]:
    """`own_headers` are written for CUDA. `extended_lambdas` is nvcc's flag."""
    work = Rewrite(tokens=tokenize(text), checked=checked)
    rename_host_names(work.tokens, work.edit)
    _rewrite_includes(work, own_headers)
    _write_errors(work, extended_lambdas)
    _rewrite_shared(work)
    simple = SimpleKernels(work.tokens, checked)
    kernels = tuple(_find_kernels(work))
    inside = _rewrite_kernels(work, kernels, simple)
    rewrite_indices(work.tokens, work.edit, inside)
    _rewrite_assembly(work)
    _rewrite_launches(work)
    # Drop `(void*)` casts of kernels, which would lose their type.
    tokens = work.tokens
    pointers = _find_void_pointers(tokens)
    for at, token in enumerate(tokens):
        arguments = find_arguments(tokens, at) if token.text in _ASK_ABOUT_KERNELS else None
        for position in range(*arguments) if arguments else ():
            if tokens[position].text == "void" and tokens[position].kind == "word":
                _drop_cast(work, position)
        if arguments and text_at(tokens, step(tokens, arguments[0])) in pointers:
            work.refuse(at, "a kernel launched through a void pointer")
    if checked:
        _rewrite_pointers(work)
    return work.render(0, len(work.tokens)), tuple(work.problems)


def rewrite_host_source(text: str) -> str:
    work = Rewrite(tokens=tokenize(text))
    rename_host_names(work.tokens, work.edit)
    return work.render(0, len(work.tokens))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    at: int
    name: int
    opening: int
    closing: int
    bounds: tuple[int, int] | None


def _find_kernels(work: Rewrite) -> Iterator[Kernel]:
    tokens = work.tokens
    aliases = _find_aliases(tokens)
    for at, token in enumerate(tokens):
        if token.kind == "word" and (token.text == "__global__" or (token.text in aliases and not token.directive)):
            kernel = _read_kernel(work, at)
            if kernel is not None:
                yield kernel


def _find_aliases(tokens: list[Token]) -> frozenset[str]:
    bodies: dict[int, list[str]] = {}
    for token in tokens:
        if token.directive and not token.is_blank:
            bodies.setdefault(token.directive, []).append(token.text)
    return frozenset(
        body[2] for body in bodies.values()
        if body[:2] == ["#", "define"] and "__global__" in body[3:] and not {"{", "("} & set(body[3:])
    )  # fmt: skip


def _read_kernel(work: Rewrite, at: int) -> Kernel | None:
    tokens, body = work.tokens, read_body(work.tokens, at)
    if body is None:
        return None
    closing = step(tokens, at, -1)
    opening = match_backward(tokens, closing) if text_at(tokens, closing) == ")" else None
    is_bound = text_at(tokens, step(tokens, opening, -1)) in LAUNCH_BOUNDS
    bounds = None if closing is None or opening is None or not is_bound else (opening + 1, closing)
    for word in range(at, body.opening):
        arguments = find_arguments(tokens, word) if tokens[word].text in LAUNCH_BOUNDS else None
        if arguments is not None:
            bounds = arguments[0] + 1, arguments[1]
        elif tokens[word].text == "__cluster_dims__":
            work.refuse(word, "thread block clusters (__cluster_dims__)")
    return Kernel(at=at, name=body.name, opening=body.opening, closing=body.closing, bounds=bounds)


def _rewrite_kernels(work: Rewrite, kernels: tuple[Kernel, ...], simple: SimpleKernels) -> list[tuple[int, int]]:
    inside = []
    for kernel in kernels:
        bounds = "0"
        if kernel.bounds is not None:
            bounds = work.render(*kernel.bounds, one_line=True)
        is_simple = simple.is_simple(kernel.opening, kernel.closing)
        if is_simple:
            inside.append((kernel.opening, kernel.closing))
        runner = "run_plain_kernel" if is_simple else "run_kernel"
        argument = "const ::harness_emulator::Place& harness_place" if is_simple else ""
        work.put_after(
            kernel.opening,
            f" return ::harness_emulator::{runner}(__func__, __FILE__, __LINE__, "
            f"::harness_emulator::Bounds{{{bounds}}}, {{{_write_arguments(work.tokens, kernel)}}}, "
            f"[=]({argument}) mutable __attribute__((always_inline)) -> void {{",
        )
        work.put_before(kernel.closing, "}); ")
    for at, token in enumerate(work.tokens):
        if token.text in LAUNCH_BOUNDS or token.text in ("__maxnreg__", "__cluster_dims__", "__block_size__"):
            arguments = find_arguments(work.tokens, at)
            if arguments is not None:
                work.blank(at, arguments[1])
    return inside


def _write_arguments(tokens: list[Token], kernel: Kernel) -> str:
    arguments = find_arguments(tokens, kernel.name)
    names = list_pointers(tokens[arguments[0] + 1 : arguments[1]]) if arguments else []
    return ", ".join(f'{{"{name}", ::harness_emulator::find_address({name})}}' for name in names)


def _rewrite_launches(work: Rewrite) -> None:
    tokens = work.tokens
    for at, token in enumerate(tokens):
        if token.text != "<<<":
            continue
        closing = find_chevrons_end(tokens, at)
        arguments, start = find_arguments(tokens, closing), find_callee(tokens, at)
        if closing is None or arguments is None or start is None:
            work.refuse(at, "a kernel launch of this form")
            continue
        configuration = work.render(at + 1, closing - 2, one_line=True)
        work.blank(at, closing)
        work.put_before(start, f"(::harness_emulator::configure({configuration}), ")
        work.put_after(arguments[1], ")")


def _write_errors(work: Rewrite, extended_lambdas: bool) -> None:
    found = find_errors(work.tokens, extended_lambdas=extended_lambdas)
    for edit in found.edits:
        work.put_after(edit.opening, edit.after)
        work.put_before(edit.closing, edit.before)
    for at, message in found.errors:
        work.put_before(at, f" _Pragma({json.dumps(f'GCC error {json.dumps(message)}')}) ")


def _rewrite_pointers(work: Rewrite) -> None:
    """Register a tensor's memory with the checks when its pointer is taken."""
    for at, token in enumerate(work.tokens):
        dot = step(work.tokens, at, -1) if token.text in _GIVE_MEMORY else None
        if dot is None or work.tokens[dot].text != ".":
            continue
        start = find_callee(work.tokens, dot)
        if start is not None:
            work.put_before(start, "::harness_emulator::known(")
            work.put_before(dot, ")")


def _find_void_pointers(tokens: list[Token]) -> frozenset[str]:
    """Return the names of variables of this type."""
    found = set()
    for at, token in enumerate(tokens):
        star = step(tokens, at) if token.text == "void" else None
        name = step(tokens, star) if text_at(tokens, star) == "*" else None
        if name is not None and tokens[name].kind == "word":
            found.add(tokens[name].text)
    return frozenset(found)


def _drop_cast(work: Rewrite, void: int) -> None:
    tokens = work.tokens
    before, after = step_over(tokens, void, ("const",), -1), step_over(tokens, void, ("const",))
    end = step(tokens, after) if text_at(tokens, after) == "*" else None
    if before is None or end is None:
        return
    pair = tokens[before].text + tokens[end].text
    if pair == "()":
        work.blank(before, end)
    elif pair == "<>":
        name = step(tokens, before, -1)
        if name is not None and tokens[name].text in ("reinterpret_cast", "static_cast"):
            work.blank(name, end)


def _rewrite_shared(work: Rewrite) -> None:
    functions = _find_function_bodies(work.tokens)
    for at, token in enumerate(work.tokens):
        if token.text != "__shared__" or token.kind != "word" or at in work.edits:
            continue
        declared = read_shared_declaration(work.tokens, at)
        if declared is None:
            if not _has_initial_value(work.tokens, at):  # invalid CUDA
                work.refuse(at, "a __shared__ declaration of this form")
            continue
        in_function = bool(token.directive) or any(low < at < high for low, high in functions)
        text = write_shared_declaration(work.tokens, declared, work.edit, in_function=in_function)
        work.put_after(declared.last, text)


def _has_initial_value(tokens: list[Token], at: int) -> bool:
    where: int | None = at
    while text_at(tokens, where) not in ("", ";", "="):
        where = step(tokens, where)
    return text_at(tokens, where) == "="


def _find_function_bodies(tokens: list[Token]) -> list[tuple[int, int]]:
    bodies = []
    for at, token in enumerate(tokens):
        if token.text != "{" or token.directive:
            continue
        before = step_over(tokens, at, ("const", "noexcept", "mutable", "override"), -1)
        closing = match_forward(tokens, at) if text_at(tokens, before) == ")" else None
        if closing is not None:
            bodies.append((at, closing))
    return bodies


def _rewrite_assembly(work: Rewrite) -> None:
    tokens = work.tokens
    for at, token in enumerate(tokens):
        if token.kind != "word" or token.text not in ("asm", "__asm__", "__asm"):
            continue
        last: int | None = at
        while text_at(tokens, step(tokens, last)) in ("volatile", "__volatile__", "inline"):
            last = step(tokens, last)
        arguments = find_arguments(tokens, last)
        if arguments is None:
            work.refuse(at, "inline assembly of this form")
            continue
        try:
            text = write_ptx(work.edited(), *arguments)
        except PtxError as error:
            work.refuse(at, f"inline PTX: {error}")
            continue
        work.blank(at, arguments[1])
        work.put_before(at, text)


def _rewrite_includes(work: Rewrite, own_headers: frozenset[str]) -> None:
    """Hide CUDA macros from other headers, which would include CUDA's own."""
    tokens = work.tokens
    for at, token in enumerate(tokens):
        if token.text != "include" or not token.directive:
            continue
        mark = step(tokens, at, -1)
        if mark is None or tokens[mark].text != "#":
            continue
        end = find_directive_end(tokens, at) - 1
        name = "".join(part.text for part in tokens[at + 1 : end + 1] if not part.is_blank).strip('<>"')
        if name in own_headers:
            continue
        work.put_before(mark, "#include <emulator/outside.h>\n")
        work.put_after(end, f"\n#include <emulator/inside.h>\n#line {tokens[end].line + 1}")
