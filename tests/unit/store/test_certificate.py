import json
from dataclasses import fields, replace

import pytest

from harness.domain import StoreError
from harness.store.certificate import (
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
    confinement="bubblewrap, namespaces",
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
    assert CERTIFICATE.digest_behind("bubblewrap, namespaces") == CERTIFICATE.digest
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


@pytest.mark.parametrize(
    ("make_hash", "folder"), [(hash_corpus, "problems/inner"), (hash_trusted_code, "evaluation/timing")]
)
def test_a_hash_follows_contents_and_names_and_nothing_else(tmp_path, make_hash, folder):
    for name in ("attacks", "controls", folder, "cli"):
        (tmp_path / name).mkdir(parents=True)
    path = tmp_path / folder / "add.py"
    path.write_text("1")
    first = make_hash(tmp_path)
    (tmp_path / "notes.txt").write_text("beside")
    (tmp_path / "attacks" / "one.pyc").write_text("compiled")
    (tmp_path / "cli" / "main.py").write_text("prints")
    assert make_hash(tmp_path) == first
    path.write_text("2")
    second = make_hash(tmp_path)
    path.rename(path.with_name("sum.py"))
    assert first != second != make_hash(tmp_path) != first
