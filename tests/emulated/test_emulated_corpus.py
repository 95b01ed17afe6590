"""The emulated device evaluates the corpus as a GPU would, names the planted bugs, and raises no false alarm.

A dozen programs in one extension each time, in `make test-slow`, and against a GPU where there is one. What needs no
torch is in `tests/unit/emulate`.
"""

import pytest
from emulated_corpus import KINDS, Bench, make_batches, read_corpus, read_program

PARTS = 24  # so that test processes share the corpus: two builds of a dozen programs at most in each


@pytest.fixture(scope="module")
def bench(build_cache):
    with Bench(build_cache) as opened:
        yield opened


def evaluate(bench, programs):
    """What came of each, by kind and name."""
    results = {}

    def keep(result):
        results[f"{result.program.kind}/{result.program.name}"] = result

    bench.evaluate(programs, keep)
    assert len(results) == len(programs)
    return results


def list_wrong(results):
    return {name: f"{one.why}: {one.evaluation.message[:400]}" for name, one in results.items() if not one.is_right}


def test_the_corpus_is_large_enough_and_its_headers_are_whole():
    programs = read_corpus()
    count = {kind: sum(one.kind == kind for one in programs) for kind in KINDS}
    assert count["good"] >= 80 and count["bad"] >= 25 and count["bugs"] >= 40
    assert len({one.name for one in programs}) == len(programs)
    assert len({one.text for one in programs}) == len(programs)
    assert sum(map(len, make_batches(programs))) == len(programs)


@pytest.mark.parametrize(
    ("kind", "header", "complaint"),
    [
        ("good", "// Title.\n// inputs: x = 1\n", "forward"),
        ("good", "// Title.\n// forward: x\n// inputs: x = 1\n// finding: order\n", "exactly the planted bugs"),
        ("bugs", "// Title.\n// forward: x\n// inputs: x = 1\n", "exactly the planted bugs"),
        ("good", "// forward: x\n// inputs: x = 1\n", "title"),
    ],
)
def test_a_header_that_is_not_whole_is_refused(kind, header, complaint, tmp_path):
    path = tmp_path / kind / "one.cu"
    path.parent.mkdir()
    path.write_text(header + "torch::Tensor run(torch::Tensor x) {}\n")
    with pytest.raises(ValueError, match=complaint):
        read_program(path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_program_gets_its_verdict_and_every_bug_its_name(part, bench, needs_compiler):
    batches = make_batches(read_corpus())[part::PARTS]
    bench.built_again.clear()
    assert list_wrong(evaluate(bench, [program for batch in batches for program in batch])) == {}
    assert bench.built_again == []  # what the emulated device makes of a program does not depend on what surrounds it


@pytest.mark.gpu
@pytest.mark.nvcc
@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_gpu_comes_to_the_same_verdicts(build_cache):
    programs = [one for one in read_corpus() if one.kind != "bugs" and one.gpu != "T4"]  # newer ones can do more
    with Bench(build_cache, device="cuda:0") as bench:
        measured = evaluate(bench, programs)
    with Bench(build_cache, checked=False) as bench:
        emulated = evaluate(bench, programs)
    outcomes = {name: (one.evaluation.outcome, emulated[name].evaluation.outcome) for name, one in measured.items()}
    assert {name: pair for name, pair in outcomes.items() if pair[0] is not pair[1]} == {}
    assert list_wrong(measured) == {}
