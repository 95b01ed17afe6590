"""Compiled files reach later workers unchanged, and stay in their folder."""

import os
from pathlib import Path

import pytest

from harness.worker.compiled_files import FOLDERS, place, read


@pytest.fixture(autouse=True)
def restored_environment(monkeypatch):
    for variable in FOLDERS:
        monkeypatch.setenv(variable, "")


def test_files_and_folders_are_the_same_in_the_next_worker(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    place(first, {})
    folder = first / "triton" / "key"
    folder.mkdir(parents=True)
    (folder / "kernel.cubin").write_bytes(b"\x7fELF\x00\xff")
    (folder / "link").symlink_to("/etc/passwd")
    place(second, read(first))
    assert (second / "triton" / "key" / "kernel.cubin").read_bytes() == b"\x7fELF\x00\xff"
    assert not (second / "triton" / "key" / "link").exists()
    assert os.environ["TRITON_CACHE_DIR"] == str(second / "triton")


def test_too_many_bytes_are_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.worker.compiled_files.MOST_BYTES", 5)
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "kernel").write_bytes(b"six666")
    assert read(tmp_path) == {}


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside-of-all"])
def test_no_file_is_written_outside(tmp_path, name):
    with pytest.raises(ValueError, match="does not lie"):
        place(tmp_path / "root", {name: ""})


def test_inductor_headers_lie_in_the_folder_of_the_worker(tmp_path, monkeypatch):
    from torch._inductor import codecache

    for name in ("_HEADER_DIR", "_HEADER_LOCK_DIR"):
        assert getattr(codecache, name)  # Inductor reads it
        monkeypatch.setattr(codecache, name, "/read-only")
    place(tmp_path / "compiled", {})
    headers, locks = map(Path, (codecache._HEADER_DIR, codecache._HEADER_LOCK_DIR))
    assert (headers, locks) == (tmp_path / "precompiled_headers", tmp_path / "precompiled_headers" / "locks")
