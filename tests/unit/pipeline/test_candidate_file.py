"""Candidates given as files or on standard input, and answers given in their place."""

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.domain import UsageError
from harness.pipeline.evaluate import name_candidate, read_candidate, read_submission

PROGRAM = "from torch import nn\n\n\nclass ModelNew(nn.Module):\n    def forward(self, x):\n        return x\n"
FENCED = f"```python\n{PROGRAM}```\n"


@pytest.mark.parametrize(
    "text",
    [
        FENCED,
        f"Okay, let's think about it.\n\n{FENCED}\nThat's all.\n",
        f"<think>\nIt's easy.\n</think>\n{FENCED}",
        f"# My answer\n\nThe program doesn't need a kernel.\n\n{FENCED}",
        f"```python\n{PROGRAM[:60]}",
    ],
)
def test_answer_given_as_a_program_is_an_error_naming_extract(tmp_path, text):
    file = tmp_path / "answer.txt"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"looks like a model's answer: .* `harness extract .*answer\.txt >"):
        read_candidate(file)


@pytest.mark.parametrize("text", [PROGRAM, f'"""Use:\n\n{FENCED}"""\n{PROGRAM}', "hello world", PROGRAM + "x = (\n"])
def test_a_program_is_read_as_it_is_also_with_a_syntax_error(tmp_path, text):
    file = tmp_path / "candidate.py"
    file.write_text(text)
    assert read_candidate(file) == text


@pytest.mark.parametrize("text", [FENCED, f"Okay, let's see.\n\n{FENCED}", PROGRAM])
def test_the_program_of_an_answer_is_taken_where_no_file_is_given(text):
    candidate, notes = read_submission(text, "torch")
    assert (candidate.source, notes) == (PROGRAM, ())


def test_program_only_in_reasoning_gets_a_note_naming_the_mark():
    candidate, [note] = read_submission(f"<think>\nIt's easy.\n{FENCED}", "torch")
    assert candidate is None
    assert "the mark <think> in line 1" in note.message


def test_an_answer_on_standard_input_is_to_be_piped_through_extract(monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(FENCED.encode())))
    with pytest.raises(UsageError, match=r"^stdin is .*`COMMAND \| harness extract - \| harness evaluate"):
        read_candidate(Path("-"))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_dash_reads_standard_input(monkeypatch, encoding):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(PROGRAM.encode(encoding))))
    assert (read_candidate(Path("-")), name_candidate(Path("-"))) == (PROGRAM, "stdin")


@pytest.mark.parametrize("text", ["", " \n", "\ufeff\n"])
def test_an_empty_file_is_no_candidate(tmp_path, text):
    (tmp_path / "c.py").write_text(text)
    with pytest.raises(UsageError, match=r"c\.py is empty: it holds no program"):
        read_candidate(tmp_path / "c.py")
