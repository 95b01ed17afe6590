"""Only `harness.cli` prints; what other packages report are values, calls of `show` and log records."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

HARNESS = Path(__file__).resolve().parents[2] / "harness"
# Programs of their own, whose output another process reads.
PROGRAMS = {
    "service/adapters/harbor.py",
    "worker/emulated/triton/compilation.py",
    "worker/forkserver.py",
    "worker/isolation/launcher.py",
}
STREAMS = ("stdout", "stderr", "__stdout__", "__stderr__")


def find_prints(source: str) -> Iterator[int]:
    """The lines that print, or import what prints."""
    if not re.search(r"print|typer|click|write", source):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            packages = names if isinstance(node, ast.Import) else [node.module or ""]
            if any(one.partition(".")[0] in ("typer", "click") for one in packages) or "print" in names:
                yield node.lineno
        if isinstance(node, ast.Call) and _prints(node):
            yield node.lineno


def _prints(call: ast.Call) -> bool:
    match call.func:
        case ast.Name(id="print") | ast.Attribute(attr="print"):
            return True
        case ast.Attribute(value=ast.Name(id="os"), attr="write"):
            return isinstance(call.args[0], ast.Constant)
        case ast.Attribute(value=stream, attr="write" | "writelines"):
            return any(isinstance(one, ast.Attribute) and one.attr in STREAMS for one in ast.walk(stream))
    return False


def test_only_the_command_line_prints():
    found = [
        f"{path.relative_to(HARNESS)}:{line}"
        for path in sorted(HARNESS.rglob("*.py"))
        if path.relative_to(HARNESS).parts[0] != "cli" and str(path.relative_to(HARNESS)) not in PROGRAMS
        for line in find_prints(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_every_program_that_prints_exists():
    assert [name for name in PROGRAMS if not any(find_prints((HARNESS / name).read_text(encoding="utf-8")))] == []


@pytest.mark.parametrize(
    "source",
    [
        "print(1)",
        "import typer",
        "from click import echo",
        "from rich import print",
        "Console().print(1)",
        "sys.stderr.write('x')",
        "sys.stdout.buffer.write(b'x')",
        "os.write(2, b'x')",
    ],
)
def test_a_print_is_found(source):
    assert list(find_prints(source)) == [1]


@pytest.mark.parametrize(
    "source", ["pipe.write(b'x')", "os.write(tell, b'x')", "log.warning('x')", "sys.stdout.flush()"]
)
def test_other_output_is_allowed(source):
    assert list(find_prints(source)) == []
