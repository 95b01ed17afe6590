import json
import re
import shutil
import time
from dataclasses import fields, replace
from pathlib import Path

import pytest

import harness
from harness.domain import StoreError
from harness.evaluation.certificate import (
    BESIDE,
    Basis,
    Certificate,
    certificate_path,
    hash_corpus,
    hash_trusted_code,
    read_certificate,
    remove_certificate,
    write_certificate,
)

BASIS = Basis(
    device="cpu", harness="0.1.0", package="p", corpus="c", hardware="Example CPU", torch="2.9.0", python="3.11.2",
    isolation="private root, namespaces",
)  # fmt: skip
CERTIFICATE = Certificate(basis=BASIS, made_at="2025-01-01T00:00:00+00:00", attacks=60, controls=40)


def test_a_certificate_is_read_as_it_was_written(tmp_path):
    write_certificate(tmp_path / "machine", CERTIFICATE)
    assert read_certificate(tmp_path / "machine", "cpu") == CERTIFICATE
    assert read_certificate(tmp_path / "machine", "cuda") is None
    assert [path.name for path in (tmp_path / "machine").iterdir()] == ["certificate-cpu.json"]


def test_a_certificate_holds_for_the_same_basis():
    assert CERTIFICATE.explain_difference(BASIS) is None


@pytest.mark.parametrize("name", [field.name for field in fields(Basis)])
def test_any_change_ends_a_certificate_and_is_named(name):
    difference = CERTIFICATE.explain_difference(replace(BASIS, **{name: "another"}))
    assert f"{name} ({getattr(BASIS, name)} then, another now)" in difference


def test_its_digest_is_stamped_only_with_its_own_isolation():
    assert CERTIFICATE.digest_behind("private root, namespaces") == CERTIFICATE.digest
    assert CERTIFICATE.digest_behind("rlimits") == ""


@pytest.mark.parametrize("edit", [{"attacks": 61}, {"made_at": "2026"}, {"digest": "0" * 16}, {"basis": None}])
def test_a_certificate_that_was_edited_is_none(tmp_path, edit):
    path = write_certificate(tmp_path, CERTIFICATE)
    path.write_text(json.dumps(json.loads(path.read_text()) | edit))
    assert read_certificate(tmp_path, "cpu") is None


def test_a_damaged_file_is_no_certificate(tmp_path):
    certificate_path(tmp_path, "cpu").write_text("{")
    assert read_certificate(tmp_path, "cpu") is None


def test_removing_ends_it_and_may_be_done_twice(tmp_path):
    write_certificate(tmp_path, CERTIFICATE)
    for _ in range(2):
        remove_certificate(tmp_path, "cpu")
        assert read_certificate(tmp_path, "cpu") is None


def test_a_folder_that_cannot_be_written_is_an_error_that_names_it(tmp_path):
    (tmp_path / "machine").write_text("a file")
    with pytest.raises(StoreError, match=r"certificate-cpu\.json"):
        write_certificate(tmp_path / "machine", CERTIFICATE)


def test_the_hash_of_a_corpus_follows_contents_and_names_and_nothing_else(tmp_path):
    for name in ("attacks", "controls", "problems/inner"):
        (tmp_path / name).mkdir(parents=True)
    path = tmp_path / "problems/inner/add.py"
    path.write_text("1")
    first = hash_corpus(tmp_path)
    (tmp_path / "notes.txt").write_text("beside")
    (tmp_path / "attacks" / "one.pyc").write_text("compiled")
    assert hash_corpus(tmp_path) == first
    path.write_text("2")
    second = hash_corpus(tmp_path)
    path.rename(path.with_name("sum.py"))
    assert first != second != hash_corpus(tmp_path) != first


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package, and its hash."""
    folder = tmp_path_factory.mktemp("copy") / "harness"
    shutil.copytree(Path(harness.__file__).parent, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder, hash_trusted_code(folder)


@pytest.mark.parametrize(
    ("name", "decides"),
    [
        ("analysis/intervals.py", True),
        ("evaluation/timing/system_conditions.py", True),
        ("syntax/__init__.py", True),
        ("construction/calls.py", True),
        ("evaluation/evaluator.py", True),
        ("executors/evaluator_process.py", True),  # started by a program text
        ("worker/isolation/launcher.py", True),
        ("worker/forkserver.py", True),
        ("worker/program.py", True),
        ("worker/languages/cute.py", True),  # imported by a name that the evaluator sends
        ("languages/cute.py", True),
        ("emulator/runtime/emulator/device.h", True),
        ("report/html/page.py", False),
        ("cli/evaluate.py", False),
        ("client.py", False),
    ],
)
def test_a_change_of_what_decides_verdicts_ends_a_certificate(package, name, decides):
    folder, first = package
    text = (folder / name).read_text()
    (folder / name).write_text(f"{text}\n")
    assert (hash_trusted_code(folder) != first) == decides
    (folder / name).write_text(text)


def test_nothing_that_evaluates_imports_what_the_hash_leaves_out():
    package = Path(harness.__file__).parent
    deciding = [path for path in package.rglob("*.py") if path.relative_to(package).parts[0] not in BESIDE]
    beside = re.compile(rf"(?:from|import) harness\.({'|'.join(name.removesuffix('.py') for name in BESIDE)})\b")
    assert {path.name: found[0] for path in deciding if (found := beside.search(path.read_text()))} == {}


def test_the_hash_takes_less_than_a_third_of_a_second(package):
    began_s = time.process_time()
    assert hash_trusted_code(package[0]) == package[1]
    assert time.process_time() - began_s < 0.3
