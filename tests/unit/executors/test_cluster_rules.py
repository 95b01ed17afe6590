"""The rules of a cluster's executor that need no cluster."""

from dataclasses import replace

import pytest

from harness.builder.cache import find_entry, pack_builds, unpack_builds
from harness.doctor.cluster_nodes import explain
from harness.domain import BuildResult, BuiltAhead
from harness.executors.cluster.connection import Versions, share_cores, unpack

KEY = "ab" * 32
VERSIONS = Versions(harness="1.0", package="p", torch="2.15", python="3.11.7")


@pytest.mark.parametrize("changed", ["harness", "package", "torch", "python"])
def test_a_difference_of_versions_names_both(changed):
    difference = VERSIONS.explain_difference(replace(VERSIONS, **{changed: "9.9"}))
    assert difference == f"{changed} 9.9, here {getattr(VERSIONS, changed)}"
    assert VERSIONS.explain_difference(VERSIONS) == ""


def test_library_built_on_one_node_is_cached_on_another(tmp_path):
    there, here = tmp_path / "there", tmp_path / "here"
    entry = find_entry(there, KEY)
    entry.mkdir(parents=True)
    here.mkdir()
    (entry / "library.so").write_bytes(b"\x7fELF")
    (entry / "log.txt").write_text("a log")
    result = BuildResult(key=KEY, status="built", extension=str(entry / "library.so"), log="", duration_s=3.0)
    built = BuiltAhead(builds={KEY: result}, packed=pack_builds(there, [KEY, "not kept"]))
    moved = unpack(built, here).builds[KEY]
    assert moved == replace(result, extension=str(find_entry(here, KEY) / "library.so"))
    assert find_entry(here, KEY).joinpath("library.so").read_bytes() == b"\x7fELF"
    (find_entry(here, KEY) / "log.txt").write_text("kept")
    unpack_builds(here, built.packed)
    assert (find_entry(here, KEY) / "log.txt").read_text() == "kept"
    assert not list(here.glob("build-*"))


def test_the_gpus_of_a_node_share_its_cores_if_there_are_enough():
    shares = [share_cores(set(range(32)), index, 2) for index in range(2)]
    assert shares[0] | shares[1] == set(range(32))
    assert not shares[0] & shares[1]
    assert share_cores({0, 1}, 1, 2) == {0, 1}


class _TaskError(Exception):
    def __init__(self, cause):
        super().__init__(f"examine_device() (pid=7)\nTraceback\n{cause!r}")
        self.cause = cause


def test_a_device_that_cannot_be_examined_is_explained_in_one_line():
    assert explain(_TaskError(RuntimeError("no driver\ninstall one"))) == "RuntimeError: no driver"
    assert explain(ConnectionError("the node is gone")) == "ConnectionError: the node is gone"
