"""Answers in several files: what the program uses by its name is joined, the rest is noted."""

from pathlib import Path

import pytest

from harness.generate.extraction.extractor import Found, find_code
from harness.generate.extraction.notes import list_alternatives, summarise_choice

KERNEL = '#include <torch/extension.h>\ntorch::Tensor relu(torch::Tensor x) { return x; } // "\\n"\n'
HELPER = "import math\n\n\ndef relu(x):\n    return max(x, 0)\n"
READS = (
    "from pathlib import Path\n\nTEXT = Path(__file__).with_name('{}').read_text()\n\n\nclass ModelNew:\n    x = TEXT\n"
)
USES = "\n\nclass ModelNew:\n    x = {}\n"


def _find(text: str) -> Found:
    found = find_code(text)
    assert found is not None
    return found


def _answer(heading: str, source: str, program: str, info: str = "") -> str:
    return f"{heading}\n\n```{info}\n{source}```\n\n**model.py**\n\n```python\n{program}```\n"


def _run(source: str, folder: Path) -> object:
    names = {"__file__": str(folder / "program.py"), "__name__": "program"}
    exec(compile(source, "program.py", "exec"), names)
    return names["ModelNew"].x  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("heading", "info"),
    [
        ("**relu.cpp**", "cpp"),
        ("### `relu.cpp`", "cpp"),
        ("#### 1. relu.cpp", ""),
        ("File: relu.cpp", "cpp"),
        ("First the kernel, in `relu.cpp`, which is compiled once.", "cpp"),
        ("The kernel:", "cpp relu.cpp"),
        ("The kernel:", 'cpp title="relu.cpp"'),
        ("The kernel:", "cpp:src/relu.cpp"),
    ],
)
def test_a_file_that_the_program_reads_is_written_beside_it(heading: str, info: str, tmp_path: Path) -> None:
    found = _find(_answer(heading, KERNEL, READS.format("relu.cpp"), info))
    assert found.extraction.rule == "joined"
    assert len(found.extraction.joined) == 1
    assert _run(found.source, tmp_path) == KERNEL


def test_a_name_in_the_first_line_of_a_file_is_enough(tmp_path: Path) -> None:
    source = f"// relu.cpp\n{KERNEL}"
    assert _run(_find(_answer("Kernel:", source, READS.format("relu.cpp"))).source, tmp_path) == source


def test_a_header_that_a_used_file_includes_is_written_too(tmp_path: Path) -> None:
    kernel = _answer("`csrc/relu.cu`:", '#include "relu.cuh"\n', READS.format("relu.cu"))
    _run(_find(f"`csrc/relu.cuh`:\n\n```cpp\n#pragma once\n```\n\n{kernel}").source, tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.cu*")) == [
        "csrc/relu.cu", "csrc/relu.cuh", "relu.cu"
    ]  # fmt: skip


def test_the_files_of_a_folder_that_the_program_searches_are_written(tmp_path: Path) -> None:
    program = READS.replace("with_name('{}').read_text()", "with_name('csrc').glob('*.cpp').__next__().read_text()")
    assert _run(_find(_answer("**csrc/relu.cpp**", KERNEL, program)).source, tmp_path) == KERNEL


def test_a_docstring_and_future_imports_stay_first(tmp_path: Path) -> None:
    program = f'"""A module."""\nfrom __future__ import annotations\n{READS.format("relu.cpp")}'
    assert _run(_find(_answer("**relu.cpp**", KERNEL, program)).source, tmp_path) == KERNEL


@pytest.mark.parametrize(
    ("imports", "expression"),
    [
        ("from ops import relu", "relu(-1)"),
        ("from .ops import relu as r", "r(-1)"),
        ("from ops import *", "relu(-1)"),
        ("import ops", "ops.relu(-1)"),
        ("import ops as o", "o.relu(-1)"),
    ],
)
def test_a_python_module_of_the_answer_replaces_its_import(imports: str, expression: str, tmp_path: Path) -> None:
    found = _find(_answer("**ops.py**", HELPER, f"{imports}\n{USES.format(expression)}"))
    module = type("Module", (), {"relu": staticmethod(lambda x: max(x, 0))})
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "program", module)
        assert _run(found.source, tmp_path) == 0


def test_files_in_json_are_joined(tmp_path: Path) -> None:
    import json

    files = [{"path": "relu.cpp", "content": KERNEL}, {"path": "main.py", "content": READS.format("relu.cpp")}]
    assert _run(_find(json.dumps({"sources": files})).source, tmp_path) == KERNEL


def test_a_named_file_that_the_program_does_not_use_is_noted() -> None:
    found = _find(_answer("**relu.cpp**", KERNEL, USES.format(1)))
    assert found.extraction.rule == "fence"
    assert list_alternatives(found.extraction) == [
        "left out, lines 4 to 5: the program does not use the file relu.cpp by its name"
    ]
    assert summarise_choice(found.extraction) == "rule fence, lines 11 to 14"


def test_a_file_of_tests_is_not_noted() -> None:
    found = _find(_answer("**test_relu.py**", HELPER, USES.format(1)))
    assert found.extraction.alternatives == ()
