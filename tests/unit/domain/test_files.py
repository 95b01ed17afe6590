"""Files that are there whole or not at all."""

import pytest

from harness.domain import Candidate
from harness.domain.files import read_python, replacing


def test_new_file_replaces_an_older_one_without_leftovers(tmp_path):
    path = tmp_path / "new folder" / "file.txt"
    for text in ("older", "newer"):
        with replacing(path) as partial:
            partial.write_text(text)
    assert path.read_text() == "newer"
    assert list(path.parent.iterdir()) == [path]


def test_failed_replacement_keeps_the_older_file(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("older")

    def fail():
        with replacing(path) as partial:
            partial.write_text("half")
            raise KeyError("in the middle")

    with pytest.raises(KeyError):
        fail()
    assert path.read_text() == "older"
    assert list(tmp_path.iterdir()) == [path]


def test_two_who_write_at_once_do_not_share_a_place(tmp_path):
    with replacing(tmp_path / "file.txt") as one, replacing(tmp_path / "file.txt") as other:
        one.write_text("one")
        other.write_text("other")
        assert one != other


@pytest.mark.parametrize(
    "content",
    [b"\xef\xbb\xbfname = '\xc3\xa9'\r\n", "# -*- coding: latin-1 -*-\nname = 'é'\n".encode("latin-1")],
    ids=["byte order mark", "declared encoding"],
)
def test_a_python_file_is_read_as_python_reads_it(tmp_path, content):
    path, expected, found = tmp_path / "file.py", {}, {}
    path.write_bytes(content)
    exec(content, expected)
    exec(read_python(path), found)
    assert found["name"] == expected["name"] == "é"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_byte_order_mark_of_windows_names_the_encoding(tmp_path, encoding):
    path = tmp_path / "file.py"
    path.write_bytes("name = 'é'\r\n".encode(encoding))
    assert read_python(path) == "name = 'é'\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("x = 1\n".encode("utf-16-le"), "looks like UTF-16"),
        ("x = 1\n".encode("utf-16-be"), "looks like UTF-16"),
        ("x = 1\n".encode("utf-16")[:-1], "utf-16"),
        (b"# coding: nonsense\n", "unknown encoding: nonsense"),
        (b"x = '\xff'\n", "missing encoding declaration"),
        (b"\n\n\nx = '\xff'\n", "utf-8"),
    ],
)
def test_a_file_in_another_encoding_says_how_to_save_it(tmp_path, content, words):
    path = tmp_path / "file.py"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"{words}.*: save it as UTF-8"):
        read_python(path)


def test_a_program_has_no_byte_order_mark_wherever_it_comes_from():
    assert Candidate(source="\ufeffimport torch\n", language="cpp", rule="file").source == "import torch\n"
