"""Files that are there whole or not at all."""

import pytest

from harness.domain.files import replacing


def test_a_file_takes_the_place_of_an_older_one_and_leaves_nothing_beside_it(tmp_path):
    path = tmp_path / "new folder" / "file.txt"
    for text in ("older", "newer"):
        with replacing(path) as partial:
            partial.write_text(text)
    assert path.read_text() == "newer"
    assert list(path.parent.iterdir()) == [path]


def test_what_fails_in_the_middle_leaves_the_older_file_alone(tmp_path):
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
