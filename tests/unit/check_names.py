"""Collects names of checks from the source."""

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / "harness"
RUNTIME_CALL = re.compile(
    r'\b(?:report|record|note|fail_thread|fail_launch|fail)\((?:launch, )?(?:\d+, )?(?:[\w.]+ \? "(\w+)" : )?"(\w+)",'
)
RUNTIME_VARIABLE = re.compile(r'\b(?:message, )?check = (?:\w+ \? "(\w+)" : )?"(\w+)"')
NAME = re.compile(r"[a-z]\w+")


def collect_check_names() -> dict[str, set[str]]:
    """Map each name to the files that contain it."""
    found = defaultdict(set)
    texts = {path: path.read_text() for path in ROOT.rglob("*.py") if "data" not in path.parts}
    trees = _parse_matching(texts, r"\bcheck\b")
    takers = _list_takers(trees.values())
    trees |= _parse_matching(texts, rf"\b(?:{'|'.join(takers)})\(")
    constants = _list_constants(_parse_matching(texts, r'(?m)^_?[A-Z].*[A-Z] = "').values())
    for path, tree in trees.items():
        for value in _list_values(tree, takers):
            for name in _read_strings(value, constants) | _read_loop(value, tree, constants):
                found[name].add(path.name)
    for path in (ROOT / "emulator" / "runtime").rglob("*"):
        if path.suffix in (".h", ".cpp", ".cuh"):
            text = path.read_text()
            for match in (*RUNTIME_CALL.finditer(text), *RUNTIME_VARIABLE.finditer(text)):
                for name in filter(None, match.groups()):
                    found[name].add(path.name)
    return {name: files for name, files in found.items() if NAME.fullmatch(name)}


def _parse_matching(texts: dict[Path, str], pattern: str) -> dict[Path, ast.Module]:
    return {path: _parse(text) for path, text in texts.items() if re.search(pattern, text)}


_parse = functools.cache(ast.parse)


def _pair(targets: list[ast.expr], value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    for target in targets:
        if isinstance(target, ast.Name):
            yield target.id, value
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, part in zip(target.elts, value.elts, strict=True):
                yield from _pair([one], part)


def _list_constants(trees) -> dict[str, set[str]]:
    values = defaultdict(set)
    for tree in trees:
        for node in tree.body:
            if isinstance(node, ast.Assign):
                for name, value in _pair(node.targets, node.value):
                    if isinstance(value, ast.Constant) and isinstance(value.value, str):
                        values[name].add(value.value)
    return values


def _list_takers(trees) -> dict[str, int]:
    """Position of the parameter or field `check: str`."""
    takers = {}
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.FunctionDef):
            taken = [one for one in (*node.args.posonlyargs, *node.args.args) if one.arg not in ("self", "cls")]
            names = [(one.arg, one.annotation) for one in taken]
        elif isinstance(node, ast.ClassDef):
            names = [(one.target.id, one.annotation) for one in node.body if isinstance(one, ast.AnnAssign)]
        else:
            continue
        at = next((at for at, (name, kind) in enumerate(names) if name == "check" and _is_string(kind)), None)
        if at is not None:
            takers[node.name] = at
    return takers


def _is_string(annotation) -> bool:
    return annotation is not None and ast.unparse(annotation) == "str"


def _list_values(tree, takers) -> Iterator[ast.expr]:
    """Expressions given to a parameter, a variable or a key `check`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            yield from (one.value for one in node.keywords if one.arg == "check")
            if name in takers and len(node.args) > takers[name]:
                yield node.args[takers[name]]
        elif isinstance(node, ast.FunctionDef):
            last = node.args.args[len(node.args.args) - len(node.args.defaults) :]
            given = [*zip(last, node.args.defaults, strict=True)]
            given += zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            yield from (value for one, value in given if one.arg == "check" and value is not None)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield from (value for name, value in _pair([node.target], node.value) if name == "check")
        elif isinstance(node, ast.Assign):
            yield from (value for name, value in _pair(node.targets, node.value) if name == "check")
        elif isinstance(node, ast.Dict):
            yield from (
                value
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant) and key.value == "check"
            )


def _read_strings(value: ast.expr, constants) -> set[str]:
    if isinstance(value, ast.IfExp):
        return _read_strings(value.body, constants) | _read_strings(value.orelse, constants)
    if isinstance(value, ast.Name):
        return constants.get(value.id, set()) if value.id.strip("_").isupper() else set()
    return {value.value} if isinstance(value, ast.Constant) and isinstance(value.value, str) else set()


def _read_loop(value: ast.expr, tree, constants) -> set[str]:
    """Where `check` is a variable of a loop: keys of dicts, and first elements of tuples, in the module."""
    if not (isinstance(value, ast.Name) and value.id == "check" and _has_loop(tree)):
        return set()
    firsts = [one.elts[0] for one in ast.walk(tree) if isinstance(one, ast.Tuple) and one.elts]
    keys = [key for one in ast.walk(tree) if isinstance(one, ast.Dict) for key in one.keys if key is not None]
    return {name for one in (*firsts, *keys) for name in _read_strings(one, constants)}


def _has_loop(tree) -> bool:
    loops = (one.target for one in ast.walk(tree) if isinstance(one, ast.For | ast.comprehension))
    return any(getattr(node, "id", "") == "check" for target in loops for node in ast.walk(target))
