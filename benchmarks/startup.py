"""What `harness --help` costs: processor seconds, and that neither torch nor pandas is imported.

Run: python benchmarks/startup.py
Goal: under 0.2 s of CPU. Baseline: an interpreter that only imports torch.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

REPEATS = 7
GOAL_S = 0.2


def measure_cpu_s(command: list[str]) -> float:
    """User plus system seconds of one process and its children, the median of several runs."""
    times = []
    for _ in range(REPEATS):
        before = os.times()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        times.append(after.children_user - before.children_user + after.children_system - before.children_system)
    return statistics.median(times)


def find_heavy_imports() -> list[str]:
    """Which of the heavy packages `harness --help` loads."""
    program = (
        "import sys; from harness.cli.main import run_command; run_command(['--help']); "
        "heavy = ('torch', 'pandas', 'numpy', 'openai', 'scipy'); "
        "print(*[name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    finished = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return finished.stderr.split()


def main() -> None:
    harness_s = measure_cpu_s([sys.executable, "-m", "harness", "--help"])
    torch_s = measure_cpu_s([sys.executable, "-c", "import torch"])
    print(f"{'':24}{'CPU s':>8}  ratio to baseline")
    print(f"{'harness --help':24}{harness_s:8.3f}  {harness_s / torch_s:.3f}")
    print(f"{'baseline: import torch':24}{torch_s:8.3f}  1")
    verdict = "met" if harness_s < GOAL_S else "MISSED"
    print(f"goal {GOAL_S} s: {verdict}; heavy imports: {find_heavy_imports() or 'none'}")


if __name__ == "__main__":
    main()
