"""Keeps how Triton compiled each kernel, as text, so that the evaluator can compile it again (`triton_rebuild`)."""

import ast
import hashlib
import inspect
import json
import os
import textwrap
from collections.abc import Collection
from contextlib import suppress
from types import ModuleType
from typing import Any

MOST_CHARACTERS = 200_000  # of one kernel
MOST_KERNELS = 1000
# What else would run code of the program or read its files, in the process that compiles the kernel again.
OPTIONS = frozenset((
    "num_warps", "num_ctas", "num_stages", "maxnreg", "cluster_dims", "enable_fp_fusion", "enable_reflect_ftz",
    "launch_cooperative_grid", "launch_pdl", "default_dot_input_precision", "max_num_imprecise_acc_default", "debug",
    "sanitize_overflow", "supported_fp8_dtypes", "deprecated_fp8_dot_operand_dtypes", "allowed_dot_input_precisions",
    "minnctapercluster",
))  # fmt: skip
# Without lines of source: among them ptxas writes when the source file was changed.
REPEATABLE = {"TRITON_DISABLE_LINE_INFO": "1"}
_kept: dict[str, tuple[str, str]] = {}  # name and description, by the digest of the code


class Undescribable(Exception):
    pass


def keep_compilations() -> None:
    """Do nothing without Triton. Must run before the program is imported."""
    try:
        import triton
        from triton.compiler import compiler
    except ImportError:
        return
    usual = compiler.compile
    if usual.__module__ == __name__:
        return  # another language's preparation did it
    os.environ |= REPEATABLE
    form = inspect.signature(usual)

    def compile_and_keep(*args: Any, **kwargs: Any) -> Any:
        kernel = usual(*args, **kwargs)
        with suppress(Exception):  # a program may have replaced anything
            _keep(kernel, form.bind(*args, **kwargs).arguments.get("options"))
        return kernel

    for module in (triton, triton.compiler, compiler):
        module.compile = compile_and_keep


def add_compilations(recording: int, names: Collection[str]) -> None:
    """Add those of the functions with these names to the recording's JSON, which ends with a brace."""
    found = {digest: text for digest, (name, text) in _kept.items() if name in names}
    size_bytes = os.fstat(recording).st_size
    os.pwrite(recording, f', "compilations": {json.dumps(found)}}}'.encode(), size_bytes - 1)


def _keep(kernel: Any, options: dict[str, Any] | None) -> None:
    code = kernel.asm["cubin"]
    digest = hashlib.sha256(code).hexdigest()
    if digest in _kept or len(_kept) >= MOST_KERNELS:
        return
    text = json.dumps(_describe(kernel, options or {}))
    if len(text) <= MOST_CHARACTERS:
        _kept[digest] = kernel.metadata.name, text


def _describe(kernel: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Raises Undescribable."""
    from triton.compiler import make_backend

    source, target, functions = kernel.src, kernel.metadata.target, _Functions()
    usual = make_backend(target).parse_options({}).__dict__
    chosen = {name: value for name, value in options.items() if name not in usual or usual[name] != value}
    if not chosen.keys() <= OPTIONS:
        raise Undescribable
    functions.add(source.fn)
    return {
        "name": kernel.metadata.name,
        "target": [target.backend, target.arch, target.warp_size],
        "options": {name: functions.encode(value) for name, value in chosen.items()},
        "signature": {name: functions.encode(value) for name, value in source.signature.items()},
        "constants": [[list(path), functions.encode(value)] for path, value in source.constants.items()],
        "attributes": [[list(path), value] for path, value in source.attrs.items()],
        "environment": read_environment(),
        "functions": functions.described,
    }


class _Functions:
    """The kernel, and the functions that it calls, each with the values that its text names."""

    def __init__(self) -> None:
        self.described: list[dict[str, Any]] = []
        self._known: dict[int, int] = {}

    def add(self, function: Any) -> int:
        at = self._known.setdefault(id(function), len(self.described))
        if at == len(self.described):
            self.described.append({})
            self.described[at].update(self._describe(function))
        return at

    def _describe(self, function: Any) -> dict[str, Any]:
        lines = function.raw_src
        first = next(at for at, line in enumerate(lines) if line.lstrip().startswith("def "))
        text = "".join(lines[first:])
        if textwrap.dedent(text) != function.src:
            raise Undescribable  # the program has changed it
        return {
            "text": text,
            "line": function.starting_line_number + first,
            "file": function.fn.__code__.co_filename,
            "module": function.fn.__module__,
            "qualified": function.fn.__qualname__,
            "noinline": bool(function.noinline),
            "scope": self._list_values(function),
        }

    def _list_values(self, function: Any) -> dict[str, Any]:
        names = {node.id for node in ast.walk(ast.parse(function.src)) if isinstance(node, ast.Name)}
        scope = {**function.fn.__globals__, **inspect.getclosurevars(function.fn).nonlocals}
        found: dict[str, Any] = {}
        for name in sorted(names & scope.keys()):
            with suppress(Undescribable):  # the name may be that of a local variable
                found[name] = self.encode(scope[name])
        return found

    def encode(self, value: Any) -> Any:
        """Raises Undescribable."""
        from triton import language

        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return {"float": value.hex()}
        if type(value) is tuple:
            return {"tuple": [self.encode(one) for one in value]}
        if type(value) is language.constexpr:
            return {"constexpr": self.encode(value.value)}
        return {"dtype": value.name} if type(value) is language.dtype else self._encode_named(value)

    def _encode_named(self, value: Any) -> Any:
        from triton.runtime.jit import JITFunction

        module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
        if isinstance(value, ModuleType) and is_public(value.__name__):
            return {"module": value.__name__}
        if isinstance(module, str) and isinstance(name, str) and is_public(module):
            return {"public": [module, name]}
        if isinstance(value, JITFunction):
            return {"function": self.add(value)}
        raise Undescribable


def is_public(module: str) -> bool:
    """Return whether kernels may name the module: Triton's language, and a few helpers of host code."""
    return module in ("math", "triton") or f"{module}.".startswith("triton.language.")


def read_environment() -> dict[str, str]:
    """Return the variables by which Triton compiles differently."""
    try:
        from triton._C.libtriton import get_cache_invalidating_env_vars
    except ImportError:
        return {}  # other versions
    return dict(get_cache_invalidating_env_vars())
