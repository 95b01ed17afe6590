"""How the words before and after a block speak of it."""

import pytest

from harness.generate.extraction.remarks import EARLIER, REJECTED, SUBMITTED, read_echo, read_lead

LEADS = [
    (0, "Here is the optimized version of the original code:"),
    (0, "Here's the optimized code with a custom CUDA kernel for the original model:"),
    (0, "Below is the new architecture, ModelNew, which replaces the reference implementation with a fused kernel:"),
    (0, "This implementation is 3x faster than the naive version:"),
    (0, "The code is not a naive version, but a tiled one:"),
    (0, "Here is the complete implementation, tested against the reference:"),
    (0, "Now the real code:"),
    (0, "```python is used below:"),
    (0, "Here's the code. It doesn't use the naive approach:"),
    (0, "The new kernel fixes the wrong indexing of the previous kernel:"),
    (SUBMITTED, "Here is my final answer:"),
    (SUBMITTED, "**Final Solution:**"),
    (SUBMITTED, "Final code"),
    (SUBMITTED, "## Final Answer"),
    (SUBMITTED, "Here's the corrected code:"),
    (SUBMITTED, "Fixed version:"),
    (SUBMITTED, "The final optimized implementation is:"),
    (SUBMITTED, "So the final code is:"),
    (SUBMITTED, "Final:"),
    (SUBMITTED, "I recommend this version:"),
    (SUBMITTED, "Use this one:"),
    (SUBMITTED, "Submission"),
    (SUBMITTED, "Here's the fixed kernel with proper bounds checks:"),
    (REJECTED, "A naive implementation would be:"),
    (REJECTED, "Naive approach:"),
    (REJECTED, "Baseline:"),
    (REJECTED, "For reference, here is the original:"),
    (REJECTED, "Do NOT use the following:"),
    (REJECTED, "Pseudocode:"),
    (REJECTED, "Here is a rough sketch:"),
    (REJECTED, "Incorrect:"),
    (REJECTED, "Test code"),
    (REJECTED, "Benchmark script:"),
    (REJECTED, "To verify correctness, run this test script:"),
    (EARLIER, "Original code:"),
    (EARLIER, "My first attempt:"),
    (EARLIER, "An alternative implementation:"),
    (EARLIER, "Alternatively:"),
    (EARLIER, "Previous version:"),
    (EARLIER, "Initial implementation"),
    (0, "Here's the reference model rewritten in CUDA:"),
    (0, "We keep the original forward signature:"),
    (0, "The baseline takes 3 ms. Our kernel takes 1 ms:"),
    (0, "As the reference uses float32, we keep float32. Code:"),
    (0, "Let me write the code with the first kernel fused:"),
    (0, "The check `i < n` guards the wrong case:"),
    (0, "Implementation notes for testing: none. Full code:"),
    (0, "I'll submit blocks of 256 threads to the GPU:"),
    (0, "The kernel is submitted to the current stream:"),
    (0, "Use this kernel with 256 threads:"),
]
ECHOES = [
    (0, "This fixes the bug in the original code."),
    (0, "This kernel is faster than the naive version above."),
    (0, "However, the reference has an error of 1e-6."),
    (REJECTED, "Hmm, that has a bug: the mask."),
    (REJECTED, "Wait, this is wrong."),
    (0, "No further errors are expected."),
    (0, "But note that errors below 1e-5 are normal."),
    (REJECTED, "The above code fails for odd n."),
    (0, "This avoids out of bounds accesses; that was a problem of the reference."),
    (0, "However, numerical error stays below the tolerance."),
    (0, "Actually no race conditions can occur here."),
    (0, "Note that this does not fail for odd sizes."),
    (SUBMITTED, "This is my final version."),
]


@pytest.mark.parametrize(("weight", "text"), LEADS)
def test_words_before_a_block(weight: int, text: str) -> None:
    assert read_lead(f"Some words on the problem.\n\n{text}\n").weight == weight


@pytest.mark.parametrize(("weight", "text"), ECHOES)
def test_words_after_a_block(weight: int, text: str) -> None:
    assert read_echo(f"\n{text}\n\nMore words.\n").weight == weight
