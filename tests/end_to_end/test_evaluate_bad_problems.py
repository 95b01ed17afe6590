"""`harness evaluate` with a problem file that is at fault: an outcome and exit code of its own."""

import pytest

GOOD = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, a, b):\n        return a + b\n"
WRONG = {
    "missing import": ("\nimport no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'"),
    "sys.exit": ("\nimport sys; sys.exit(0)\n", "module level ends the process, with exit code 0"),
    "os._exit": ("\nimport os; Model.forward = lambda *_: os._exit(0)\n", "forward ends the process, with exit code 0"),
    "exec": (
        "\nimport os; Model.forward = lambda *_: os.execv('/bin/true', ['true'])\n",
        "forward ends the process, with exit code 0",
    ),
    "abort": ("\nimport os; Model.forward = lambda *_: os.abort()\n", "forward ends the process by SIGABRT"),
    "crash": (
        "\nimport ctypes; Model.forward = lambda *_: ctypes.string_at(0)\n",
        "forward ends the process by SIGSEGV",
    ),
    "interrupt": (
        "\ndef stop(*_): raise KeyboardInterrupt\nModel.forward = stop\n",
        "forward raised KeyboardInterrupt",
    ),
    "signal": (
        "\nimport signal; Model.forward = lambda *_: signal.raise_signal(signal.SIGINT)\n",
        "forward raised KeyboardInterrupt",
    ),
    "closed descriptors": (
        "\nimport os; Model.forward = lambda *_: os.closerange(0, 256)\n",
        "forward closes descriptors of the process",
    ),
    "endless in C": (
        "\nimport itertools; Model.forward = lambda *_: sum(itertools.repeat(0))\n",
        "forward did not end within 2 s",
    ),
    "endless": ("\nget_inputs = lambda: [None for _ in iter(int, 1)]\n", "get_inputs() did not end within 2 s"),
    "ragged": (
        "\nget_inputs = lambda: [torch.randn(int(torch.randint(1, 99, ())), 3)] * 2\n",
        "the shapes of what get_inputs() returns change with the seed",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_a_problem_at_fault_is_a_problem_error_with_exit_code_2(tmp_path, tiny_suite, run_harness, name):
    line, message = WRONG[name]
    problem = tiny_suite / "add.py"
    problem.write_text(problem.read_text() + line)
    (tmp_path / "candidate.py").write_text(GOOD)
    command = ["evaluate", "--candidate", "candidate.py", "--problem", problem, "--language", "torch", "--no-time"]
    finished = run_harness([*command, "--device", "cpu", "--reference-timeout", "2"])
    said = " ".join(f"{finished.stdout} {finished.stderr}".split())
    assert finished.returncode == 2, said
    assert message in said
    assert "problem_error" in said
    assert not any(text in said for text in ("harness_error", "harness failed", "Traceback", "Fatal Python error"))
