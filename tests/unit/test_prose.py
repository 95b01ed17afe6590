"""Prose and names use the field's terms. Extend HOUSE_WORDS by a pattern with its better word, PROSE by a set of files,
PACKAGES by a package (or module) whose docstrings and comments are checked, and HOUSE_NAMES by a pattern of names.
"""

import ast
import functools
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROSE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/*.md", "recordings/README.md")
PACKAGES = (
    "analysis",
    "api.py",
    "builder",
    "capture",
    "cli",
    "client.py",
    "construction",
    "copies.py",
    "doctor",
    "domain",
    "emulator",
    "evaluation",
    "executors",
    "formats",
    "generate",
    "hardware",
    "languages",
    "pipeline",
    "problems",
    "protocol",
    "redteam.py",
    "report",
    "sandbox",
    "search",
    "service",
    "store",
    "tensors",
    "worker",
)
# Patterns are matched without regard to case, and across line breaks: a space stands for any white space.
HOUSE_WORDS = {
    r"\bwalls?\b": "sandbox, isolation layers",
    r"let(?:ting)? (?:it |them |him )?go\b": "resume, release",
    r"\bthe kernel (?:ends|kills|counts|says|notes|tells|continues)\b": "Linux",
    r"\bclaim(?:s|ed|ing)?\b(?!\.md)": "reported time, reported by others",
    r"\bown (?:kernels?|code)\b": "custom kernel, candidate code",
    r"\bwho (?:did|does) the work\b|\bwhose (?:code|work)\b": "time attribution",
    r"\bper cent\b": "%",
    r"\bin(?:to)? (?:another|some|many|secret|other) places?\b": "address, location, position",
    r"\btexts\b": "strings",
    r"\bis noticed\b|\bwhat was noticed\b": "finding",
    r"\bsecond look\b": "sanitizer pass",
    r"\blooks? into (?:the )?(?:worker's )?memory\b": "sample memory",
    r"\b(?:certainly|possibly|for sure) missing\b": "unaccounted time (lower, upper bound)",
    r"\bin turns\b|\bblocks of one\b": "interleaved A/B pairs",
    r"\bstrays?\b": "outlier",
    r"\bdecoys\b": "decoy inputs, decoy kernels",
    r"\bone voice\b": "one result per sample",
    r"\bcut (?:down )?to (?:a )?size\b": "shrunk",
    r"\b(?:fast|plain|build) lanes?\b": "strategy",
    r"\bkits?\b": "precompiled header cache",
    r"\bjudge[sd]?\b|\bjudging\b": "evaluator, evaluate",
    r"\b(?:nobody|somebody)\b": "no process, another user",
    r"\bfa[cç]ade\b": "stub headers",
    r"\bpoisoned\b": "NaN-filled",
    r"\b(?:room|rooms) of the house\b|\bthe rooms\b": "packages",
    r"\bhonest (?:programs?|kernels?|style)\b": "legitimate program",
}
# Patterns for the names of modules, classes, fields, functions and arguments, in snake case.
HOUSE_NAMES = {
    r"confine": "isolation",
    r"plausib": "roofline",
    r"(?<![a-z])(?:own_(?:kernels?|code|share)|without_own)(?![a-z])": "custom",
    r"(?<![a-z])lanes?(?![a-z])": "strategy",
    r"judg": "evaluate, evaluator, verdict",
    r"ceiling": "peak",
    r"(?<![a-z])claim_": "reported",
    r"^test_what_": "the subject of the statement",
}
DATA_NAMES = {
    "confinement": "column",
    "own_share": "column",
    "min_own_share": "named for its column",
    "without_own": "column",
    "own_kernels": "option",
}
GPU_LANES = {"emulator", "emulated"}  # folders whose lanes are those of a warp
CODE = re.compile(r"^(?:```.*?^```|(?: {4}|\t)[^\n]*)$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"#.*")
WORD = re.compile(r"[A-Za-z_]\w*")


def find_house_words(prose: str) -> Iterator[str]:
    """Each house word outside code, with its line and the better word."""
    plain = CODE.sub(lambda code: re.sub(r"[^\n]", "`", code[0]), prose)
    for pattern, better in HOUSE_WORDS.items():
        for found in re.finditer(pattern.replace(" ", r"\s+"), plain, re.IGNORECASE):
            yield f"line {plain.count(chr(10), 0, found.start()) + 1}: {found[0]!r}, better: {better}"


@pytest.mark.parametrize("path", sorted(path for glob in PROSE for path in ROOT.glob(glob)), ids=lambda path: path.name)
def test_prose_uses_the_terms_of_the_field(path):
    assert list(find_house_words(path.read_text(encoding="utf-8"))) == []


def list_prose(source: str) -> Iterator[tuple[int, str]]:
    """(first line, text) of each docstring of a module, and of each comment if one may hold a house word."""
    for node in list_statements(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring is not None:
                yield node.body[0].lineno, docstring
    if not any(find_house_words("\n".join(COMMENT.findall(source)))):
        return  # reading tokens takes longer than parsing
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def list_statements(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all statements in it, without their expressions, which are most of a tree."""
    yield node
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for statement in getattr(node, part, ()):
            yield from list_statements(statement)


def list_modules(package: str) -> list[Path]:
    path = ROOT / "harness" / package
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_and_comments_use_the_terms_of_the_field(package):
    found = [
        f"{path.relative_to(ROOT)}, docstring or comment at line {line}: {word}"
        for path in list_modules(package)
        for line, prose in list_prose(path.read_text(encoding="utf-8"))
        for word in find_house_words(prose)
    ]
    assert found == []


def list_names(source: str) -> Iterator[tuple[int, str]]:
    """(line, name) of each class, annotated field, function and argument of a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.lineno, node.target.id


@functools.cache
def find_house_names(name: str) -> list[str]:
    """The better words for a name."""
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return [better for pattern, better in HOUSE_NAMES.items() if name not in DATA_NAMES and re.search(pattern, snake)]


@pytest.mark.parametrize("folder", ["harness", "tests"])
def test_names_use_the_terms_of_the_docs(folder):
    found = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        where = path.relative_to(ROOT)
        source = path.read_text(encoding="utf-8")
        named = list_names(source) if any(map(find_house_names, WORD.findall(source))) else ()
        for line, name in [(1, path.stem), *named]:
            better = [word for word in find_house_names(name) if word != "strategy" or not GPU_LANES & {*where.parts}]
            found += [f"{where}:{line}: {name}, better: {word}" for word in better]
    assert found == []


@pytest.mark.parametrize(
    "name",
    ["Confinement", "plausibility", "own_code", "CeilingStore", "judgeAll", "claim_us", "test_what_it_is"],
)
def test_a_house_name_is_found(name):
    assert len(find_house_names(name)) == 1


@pytest.mark.parametrize("name", ["known_kernels", "list_claims", "planes", "own_share", "unconfirmed"])
def test_other_names_are_no_house_names(name):
    assert find_house_names(name) == []


def test_names_of_tests_have_at_most_12_words():
    named = [
        (path.name, name)
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(named) > 1000
    assert [one for one in named if one[1].count("_") > 12] == []


def test_every_set_of_files_exists():
    assert [glob for glob in PROSE if not any(ROOT.glob(glob))] == []
    assert [package for package in PACKAGES if not list_modules(package)] == []


def test_docstrings_and_comments_are_prose():
    source = '"""One."""\nclass A:\n    """Two."""\n\n    x = "no"  # the judge\n'
    assert list(list_prose(source)) == [(1, "One."), (3, "Two."), (5, "# the judge")]


@pytest.mark.parametrize(
    "prose",
    [
        "Workers run behind walls.",
        "It is let\ngo on.",
        "The worker's claim is checked.",
        "The judge decides.",
        "Nobody knows.",
        "The fast lane builds.",
    ],
)
def test_a_house_word_is_found(prose):
    assert len(list(find_house_words(prose))) == 1


@pytest.mark.parametrize(
    "prose", ["Run `harness doctor --walls`.", "See:\n\n    judge\n", "```\nthe judge\n```\n", "Linux"]
)
def test_code_may_hold_any_word(prose):
    assert list(find_house_words(prose)) == []
