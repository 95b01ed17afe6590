"""The commands of docs/your-operator.md print what the page says. Numbers and line breaks may differ."""

import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PAGE = (ROOT / "docs" / "your-operator.md").read_text(encoding="utf-8")
COMMANDS = dict(re.findall(r"^\$ (harness [^\n]*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
NUMBER = re.compile(r"-?\d[\d,.]*(?:e[+-]\d+)?\b")


def simplify(text: str) -> str:
    return " ".join(NUMBER.sub("N", re.sub("─+", "─", text)).split())


def mark(command: str):
    return pytest.param(command, id=command, marks=() if " new " in command else pytest.mark.slow)


def test_the_page_names_every_example_and_shows_the_files_as_they_are():
    assert [path.name for path in EXAMPLES.glob("*.py") if path.name not in PAGE] == []
    shown = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert shown == [(EXAMPLES / name).read_text() for name in ("scale_norm.py", "triton_right.py")]


def test_every_example_is_evaluated_on_the_page():
    evaluated = {command.split()[2] for command in COMMANDS if " evaluate " in command}
    assert evaluated == {path.name for path in EXAMPLES.glob("*.py")} - {"scale_norm.py"}


@pytest.mark.parametrize("command", [*map(mark, COMMANDS)])
def test_a_command_prints_what_the_page_says(command, run_harness, tmp_path, needs_compiler):
    folder = tmp_path / "examples"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("__pycache__", "results"))
    done = run_harness(command.split()[1:], cwd=folder, env={"CUDA_HOME": "none"})  # nvcc takes a minute of CPU time
    said = simplify(done.stdout)
    for part in COMMANDS[command].split("..."):
        assert simplify(part) in said, done.stdout + done.stderr
