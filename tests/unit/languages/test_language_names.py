"""Kernel languages are named in their rules only: another one needs no change elsewhere."""

import ast
import re
from pathlib import Path

import pytest

import harness

PACKAGE = Path(harness.__file__).parent
CLEAR_NAMES = re.compile(r"\b(cute|tilelang|helion|triton)\b|^cpp$", re.IGNORECASE)
MAY_NAME = re.compile(rf"{CLEAR_NAMES.pattern}|cpp|[\"'](cuda|torch)[\"']", re.IGNORECASE)  # quickly, of a whole file
DEVICE_NAMES = ("cuda", "torch")  # also a kind of device, and a package: languages only beside the word
ALLOWED = {
    "domain/generation.py": "the list of all",
    "languages/*.py": "their rules",
    "formats/definitions/*.py": "the words of these formats",
    "worker/languages/*.py": "compilers in the worker, which may not import the rules",
    "worker/emulated/triton/*.py": "the emulation of Triton",
    "worker/instrumentation.py": "torch's compiler generates Triton kernels",
    "worker/triton_*.py": "how Triton compiled a kernel",
    "worker/compiled_files.py": "torch's compiler generates Triton kernels",
    "evaluation/integrity/attribution.py": "namespaces of NVIDIA's libraries in names of kernels",
    "evaluation/integrity/code_samples.py": "folders of libraries without code for a CPU",
    "emulator/sources.py": "headers of NVIDIA's libraries",
    "tensors/single_pass.py": "the evaluator's own kernels are written in Triton",
    "sandbox/gpu/driver_library.py": "Triton's wheel holds headers of CUDA",
}


def _list_named(path: Path) -> set[int]:
    source = path.read_text(encoding="utf-8")
    if not MAY_NAME.search(source):
        return set()
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [
        node for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
    ]  # fmt: skip
    compared = _list_compared(tree) if any(node.value in DEVICE_NAMES for node in texts) else set()
    lines = {node.lineno for node in texts if CLEAR_NAMES.search(node.value)}
    return lines | {node.lineno for node in texts if node.value in DEVICE_NAMES and id(node) in compared}


def _list_compared(tree: ast.Module) -> set[int]:
    """Constants assigned to, compared with or passed for something that is called a language."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments):
            named = [*node.posonlyargs, *node.args]
            pairs = [*zip(named[len(named) - len(node.defaults) :], node.defaults, strict=True)]
            pairs += zip(node.kwonlyargs, node.kw_defaults, strict=True)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.Compare | ast.keyword | ast.Subscript | ast.Call):
            pairs = [(node, node)]
        else:
            continue
        for named, value in pairs:
            if value is not None and "language" in ast.unparse(named).lower():
                found |= {id(one) for one in _direct(value)}
    return found


def _direct(node: ast.AST) -> list[ast.AST]:
    """Without what is nested in other calls or functions."""
    found = [node]
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.Call | ast.Lambda | ast.stmt):
            found += _direct(child)
    return found


def test_languages_are_named_in_their_rules_only() -> None:
    allowed = {path for pattern in ALLOWED for path in PACKAGE.glob(pattern)}
    named = {path.relative_to(PACKAGE): _list_named(path) for path in {*PACKAGE.rglob("*.py")} - allowed}
    assert {str(path): sorted(lines) for path, lines in named.items() if lines} == {}


@pytest.mark.parametrize("pattern", ALLOWED)
def test_an_exception_is_needed(pattern: str) -> None:
    assert any(_list_named(path) for path in PACKAGE.glob(pattern))


@pytest.mark.parametrize(
    ("source", "is_named"),
    [
        ('if rules.name == "triton": pass', True),
        ('ORDER: tuple[Language, ...] = ("cuda", "torch")', True),
        ('def export(language="cuda"): pass', True),
        ('find(device, LANGUAGES["cuda"])', True),
        ('find(language="torch")', True),
        ('if "tilelang" in source: pass', True),
        ('f"evaluating a Triton kernel on {device}"', True),
        ('CPU = "cpp"', True),
        ('"""Kernels of Triton."""', False),
        ('if device.type == "cuda": pass', False),
        ('find_version("torch")', False),
        ('Path("main.cpp")', False),
    ],
)
def test_a_name_is_found_where_it_means_a_language(source: str, is_named: bool, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    assert bool(_list_named(path)) == is_named
