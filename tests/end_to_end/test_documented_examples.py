"""The Python examples of docs/getting-started.md and docs/turns.md, run as they stand there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from chat_server import ChatServer, reply_with

import harness

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_python_example_of_getting_started_runs_and_its_kernel_is_correct(
    tmp_path, clean_environment_for, needs_compiler
):
    page = (ROOT / "docs" / "getting-started.md").read_text()
    (example,) = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "example.py").write_text(example)
    finished = subprocess.run(
        [sys.executable, "example.py"],
        cwd=tmp_path,
        env=clean_environment_for(),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith("correct ['as_given'"), finished.stdout
    assert finished.stdout.splitlines()[-1].split() == ["0", "api", "elementwise_add", "small", "correct"]
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.slow
def test_the_search_of_the_page_about_turns_runs(tmp_path, clean_environment_for, needs_compiler):
    *_, example = re.findall(
        r"^```python\n(.*?)^```$", (ROOT / "docs" / "turns.md").read_text(), re.DOTALL | re.MULTILINE
    )
    assert len(example.splitlines()) < 40
    (tmp_path / "example.py").write_text(example.replace("turns=6", "turns=2, time=False"))
    right = (ROOT / "recordings" / "repair" / "cpp" / "softmax" / "0" / "turn-1" / "completion.md").read_text()
    server = ChatServer(lambda number, request: reply_with("I cannot." if number == 1 else right))
    with server.running():
        finished = subprocess.run(
            [sys.executable, "example.py"],
            cwd=tmp_path,
            env=clean_environment_for() | {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "x"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert finished.returncode == 0, finished.stderr
    first, second, *program = finished.stdout.splitlines()
    assert (first, second) == ("0 None no_code None", "1 0 correct None")
    assert "load_inline" in "\n".join(program)


def test_importing_harness_imports_nothing_heavy():
    code = "import sys, harness; print(sorted({'torch', 'pandas', 'numpy', 'typer', 'scipy'} & set(sys.modules)))"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert finished.stdout == "[]\n"


def test_public_names_of_the_api_are_listed():
    assert {"evaluate", "improve", "load_claims", "load_results", "render_report"} <= set(dir(harness))
    assert not hasattr(harness, "nothing_of_that_name")
