"""Helion programs on the emulated device: what Helion generates for Triton is compiled, run and checked."""

from pathlib import Path

import pytest
from emulated_corpus import Bench, read_corpus

PROGRAMS = read_corpus(Path(__file__).resolve().parent / "corpus_helion")


@pytest.fixture(scope="module")
def bench(build_cache):
    pytest.importorskip("helion", reason="Helion is not installed")
    with Bench(build_cache) as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: f"{program.kind}/{program.name}")
def test_a_helion_program_gets_its_verdict_and_a_bug_its_name(program, bench):
    results = []
    bench.evaluate([program], results.append)
    (result,) = results
    assert result.is_right, f"{result.why}: {result.evaluation.message[:600]}"
    assert result.evaluation.subject.language == "helion"
