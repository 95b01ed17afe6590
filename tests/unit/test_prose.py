"""Prose uses the field's terms. Extend HOUSE_WORDS by a pattern with its better word, PROSE by a set of files, and
PACKAGES by a package whose docstrings and comments are checked."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROSE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/*.md", "recordings/README.md")
PACKAGES = ("worker", "builder", "emulator", "protocol", "hardware", "domain")
# Patterns are matched without regard to case, and across line breaks: a space stands for any white space.
HOUSE_WORDS = {
    r"\bwalls?\b": "sandbox, isolation layers",
    r"let(?:ting)? (?:it |them |him )?go\b": "resume, release",
    r"\bthe kernel (?:ends|kills|counts|says|notes|tells|continues)\b": "Linux",
    r"\bclaim(?:s|ed|ing)?\b": "reported time, reported by others",
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
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
CODE = re.compile(r"^(?:```.*?^```|(?: {4}|\t)[^\n]*)$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def find_house_words(prose: str) -> Iterator[str]:
    """Each house word outside code, with its line and the better word."""
    plain = CODE.sub(lambda code: re.sub(r"[^\n]", "`", code[0]), prose)
    for pattern, better in HOUSE_WORDS.items():
        for found in re.finditer(pattern.replace(" ", r"\s+"), plain, re.IGNORECASE):
            yield f"line {plain.count(chr(10), 0, found.start()) + 1}: {found[0]!r}, better: {better}"


@pytest.mark.parametrize("path", sorted(path for glob in PROSE for path in ROOT.glob(glob)), ids=lambda path: path.name)
def test_prose_uses_the_terms_of_the_field(path):
    assert list(find_house_words(path.read_text(encoding="utf-8"))) == []


def read_docstrings_and_comments(source: str) -> str:
    found = [ast.get_docstring(node) for node in ast.walk(ast.parse(source)) if isinstance(node, DOCUMENTED)]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    found += [token.string for token in tokens if token.type == tokenize.COMMENT]
    return "\n".join(filter(None, found))


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_and_comments_use_the_terms_of_the_field(package):
    paths = sorted((ROOT / "harness" / package).rglob("*.py"))
    prose = {path.name: read_docstrings_and_comments(path.read_text(encoding="utf-8")) for path in paths}
    found = {name: list(find_house_words(text)) for name, text in prose.items()}
    assert {name: words for name, words in found.items() if words} == {}


def test_house_words_are_found_in_docstrings_and_comments():
    source = 'def run():\n    """Behind walls."""\n    judge = 1  # nobody knows\n'
    assert len(list(find_house_words(read_docstrings_and_comments(source)))) == 2


def test_every_set_of_files_exists():
    assert [glob for glob in PROSE if not any(ROOT.glob(glob))] == []
    assert [package for package in PACKAGES if not (ROOT / "harness" / package).is_dir()] == []


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
