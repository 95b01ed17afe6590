"""What extraction costs: seconds of processor time for answers of about 5 MB.

    python benchmarks/extraction.py

One row per shape of answer, each to be below 2 s; the time grows with the length of the answer.
"""

from __future__ import annotations

import time

from harness.generate.extraction.extractor import find_code

FENCES = 24_000
LINES = "value = 1  # a line of a program\n" * 11
PROGRAM = f"class ModelNew:\n    x = 1\n{LINES}"
ANSWERS = {
    "fences without a program": f"Text.\n```python\n{LINES}```\n" * (FENCES // 2),
    "fences with a program": f"Text.\n```python\n{PROGRAM}```\n" * (FENCES // 2),
    "programs that do not parse": f"Text.\n```python\n{PROGRAM}(\n```\n" * (FENCES // 2),
    "fences that are not closed": f"```python\n{LINES[:180]}" * FENCES,
    "reasoning tags": "<think>\nA draft.\n</think>\nAn answer.\n" * (FENCES // 2),
    "prose": "A sentence about the kernel, and one more.\n" * 120_000,
}


def main() -> None:
    print(f"{'answer':<28}{'size':>9}{'processor':>12}   target")
    for name, text in ANSWERS.items():
        began_s = time.process_time()
        find_code(text)
        print(f"{name:<28}{len(text) / 1e6:>6.1f} MB{time.process_time() - began_s:>10.2f} s   below 2 s")


if __name__ == "__main__":
    main()
