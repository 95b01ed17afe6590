import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain import UsageError
from harness.formats.imported import read_json_object
from harness.formats.kernelbench.format import (
    BenchKernel,
    BenchProblem,
    find_level,
    list_claims,
    name_suite,
    number_names,
    read_kernels,
    read_problems,
    split_stem,
    write_kernels,
    write_problems,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
NAMES = st.text("ABCxyz_0123456789", min_size=1, max_size=12)
PLACES = st.tuples(st.integers(0, 9), st.integers(0, 300))
PROBLEMS = st.dictionaries(PLACES, st.tuples(NAMES, TEXTS), min_size=1, max_size=6)
KERNELS = st.dictionaries(st.tuples(st.integers(0, 9), st.integers(0, 300), st.integers(0, 20)), TEXTS, max_size=6)


@settings(max_examples=40)
@given(PROBLEMS)
def test_problems_come_back_from_folders_as_they_were(problems):
    written = [
        BenchProblem(level=level, number=number, name=name, code=code)
        for (level, number), (name, code) in sorted(problems.items())
    ]
    with tempfile.TemporaryDirectory() as folder:
        write_problems(written, Path(folder))
        assert list(read_problems(Path(folder))) == written


@settings(max_examples=10)
@given(PROBLEMS)
def test_problems_come_back_from_parquet_as_they_were(problems):
    pytest.importorskip("pyarrow")
    written = [
        BenchProblem(level=level, number=number, name=name, code=code)
        for (level, number), (name, code) in sorted(problems.items())
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "all.parquet"
        write_problems(written, path)
        assert list(read_problems(path)) == written


@settings(max_examples=40)
@given(KERNELS)
def test_kernels_come_back_as_they_were(kernels):
    written = [
        BenchKernel(level=level, number=number, sample=sample, source=source)
        for (level, number, sample), source in sorted(kernels.items())
    ]
    with tempfile.TemporaryDirectory() as folder:
        write_kernels(written, Path(folder))
        (Path(folder) / "notes.txt").write_text("not a kernel")
        assert list(read_kernels(Path(folder))) == written


@given(st.sets(st.one_of(NAMES, st.builds("{}_{}".format, st.integers(0, 20), NAMES)), max_size=10))
def test_every_name_of_a_suite_gets_a_number_of_its_own(names):
    numbered = number_names(names)
    assert numbered.keys() == names
    assert len({number for number, _ in numbered.values()}) == len(names)


def test_numbered_names_keep_their_numbers():
    assert number_names(["3_relu", "add", "1_mul"]) == {"1_mul": (1, "mul"), "3_relu": (3, "relu"), "add": (2, "add")}
    assert split_stem("03_x") is None  # would come back as 3_x


def test_a_level_is_a_suite():
    assert name_suite("kernelbench", 2) == "kernelbench_level2"
    assert find_level("kernelbench_level2") == 2
    assert find_level("core") is None


def test_one_level_folder_can_be_read_alone(tmp_path):
    write_problems([BenchProblem(level=3, number=7, name="X", code="pass")], tmp_path)
    assert read_problems(tmp_path / "level3")[0].stem == "7_X"


def test_two_problems_with_one_number_are_refused(tmp_path):
    write_problems([BenchProblem(level=1, number=7, name=name, code="pass") for name in "XY"], tmp_path)
    with pytest.raises(UsageError, match="two problems with number 7"):
        read_problems(tmp_path)


def test_a_place_without_problems_says_what_was_expected(tmp_path):
    with pytest.raises(UsageError, match=r"level1/1_Name\.py"):
        read_problems(tmp_path)


def test_a_table_with_other_columns_is_refused(tmp_path):
    pytest.importorskip("pyarrow")
    import pandas as pd

    pd.DataFrame({"code": ["x"], "name": ["y"]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(UsageError, match="lacks the columns level, problem_id"):
        read_problems(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"PAR1 half written")
    with pytest.raises(UsageError, match="as Parquet"):
        read_problems(tmp_path / "b.parquet")


ENTRY = {"compiled": True, "correctness": True, "runtime": 2.0, "metadata": {"hardware": "H100"}}


@pytest.mark.parametrize("entries", [ENTRY | {"sample_id": 0}, [ENTRY | {"sample_id": 0}]])
def test_claims_are_read_from_either_shape_of_results(entries):
    (claim,) = list_claims({"5": entries}, {"level1": {"5_Relu.py": {"mean": 3.0}}}, 1)
    assert (claim.number, claim.sample, claim.correct, claim.speedup, claim.hardware) == (5, 0, True, 1.5, "H100")


@pytest.mark.parametrize(
    ("results", "count"),
    [({}, 0), ({"x": {}}, 0), ({"1": "text"}, 0), ({"1": [None, {}]}, 1), ({"1": {"runtime": float("nan")}}, 1)],
)
def test_malformed_results_have_no_correct_claims(results, count):
    claims = list_claims(results, {"level1": "nothing"}, 1)
    assert len(claims) == count
    assert not any(claim.correct or claim.speedup or claim.runtime_ms for claim in claims)


@pytest.mark.parametrize("text", ["[1]", "{", ""])
def test_a_results_file_that_holds_no_object_is_refused(tmp_path, text):
    (tmp_path / "eval_results.json").write_text(text)
    with pytest.raises(UsageError, match="eval_results"):
        read_json_object(tmp_path / "eval_results.json")


def test_an_untimed_kernel_has_no_claimed_time():
    (claim,) = list_claims(json.loads('{"1": {"correctness": true, "runtime": -1.0}}'), {}, 1)
    assert claim.runtime_ms is None
