"""What a shell is offered, asked the way a shell asks."""

import pytest

from harness.cli.main import run_command


@pytest.fixture
def complete(tmp_path, monkeypatch, capsys, write_run):
    monkeypatch.chdir(tmp_path)
    for suite, problem in (("core", "softmax"), ("core", "_helper"), ("mine", "scan")):
        (tmp_path / "reference_models" / suite).mkdir(parents=True, exist_ok=True)
        (tmp_path / "reference_models" / suite / f"{problem}.py").touch()
    write_run("first-run", ["x = 1\n"])

    def ask(line):
        monkeypatch.setenv("_HARNESS_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        run_command([])
        return capsys.readouterr().out.split()

    return ask


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("harness evaluate ", ["first-run"]),
        ("harness report fi", ["first-run"]),
        ("harness leaderboard --run ", ["first-run"]),
        ("harness generate --suite ", ["core", "fused", "llm", "mine", "scientific"]),
        ("harness generate --suite llm --problem rms_", ["rms_norm_residual"]),
        ("harness generate --problem ", ["softmax"]),
        ("harness generate --suite mine --problem ", ["scan"]),
        ("harness evaluate --candidate x.py --problem so", ["softmax"]),
        ("harness problems check ", ["softmax"]),
        ("harness evaluate --baseline comp", ["compile", "compile-max-autotune"]),
        ("harness run --baseline compile,eager", ["compile,eager", "compile,eager-tf32"]),
        ("harness results --against li", ["library"]),
        ("harness evaluate --generated-dir nowhere ", []),
        ("harness generate --problems-dir nowhere --suite ", []),
    ],
)
def test_suites_problems_and_runs_are_offered(complete, line, offered):
    assert complete(line) == offered
