"""`harness evaluate` compares candidates with a user's folder of known solutions."""

import pytest

HEAD = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, a, b):\n"
STEPS = "".join(f"        extra = torch.mul(a, {number}) - {number} * a\n" for number in range(40))
PROGRAM = f"{HEAD}{STEPS}        return a + b\n"


@pytest.mark.slow
def test_a_known_solution_named_in_the_settings_file_is_reported(call_harness, tiny_suite, tmp_path):
    (tmp_path / "known").mkdir()
    (tmp_path / "known" / "solution.py").write_text(f"# best so far\n{PROGRAM.replace('extra', 'unused')}")
    (tmp_path / "mine.py").write_text(PROGRAM)
    (tmp_path / "harness.toml").write_text('known-solutions = "known"\n')
    fixed = ["--problems-dir", tiny_suite.parent, "--suite", "tiny", "--language", "cpp", "--no-time"]
    done = call_harness(["evaluate", "--candidate", "mine.py", "--problem", "add", *fixed])
    assert done.returncode == 0, done.stderr
    shown = " ".join(call_harness(["show", "1"]).stdout.split())
    assert (
        "warning contaminated: its program or a kernel of it is that of the known solution known/solution.py" in shown
    )
    assert "warning: contaminated" in call_harness(["results", "--csv"]).stdout
    listed = call_harness(["results", "--where", 'like(findings, "*contaminated*")', "--csv"]).stdout
    assert "mine.py" in listed
