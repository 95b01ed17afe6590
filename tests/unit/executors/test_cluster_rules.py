"""The rules of a cluster's executor that need no cluster."""

from dataclasses import replace

import pytest
from test_device_pool import make_task

from harness.builder.cache import find_entry, pack_builds, unpack_builds
from harness.doctor.cluster_nodes import explain
from harness.domain import BuildResult, Outcome
from harness.evaluation.builds import BuiltAhead
from harness.executors.cluster.connection import Versions
from harness.executors.cluster.jobs import ClusterJob, conclude_losses
from harness.executors.cluster.remote import Built, share_cores, unpack

KEY = "ab" * 32
VERSIONS = Versions(harness="1.0", package="p", torch="2.15", python="3.11.7")


def make_job(sample=0, problem="p"):
    return ClusterJob(task=make_task(sample, problem), kind="cpu")


def test_a_candidate_is_suspect_after_three_devices_were_lost_with_it():
    job = make_job()
    for number in range(3):
        assert conclude_losses(job) is None
        job.losses.append(f"node {number} died")
    verdict = conclude_losses(job)
    assert verdict.outcome is Outcome.SUSPECT
    assert "3 devices were lost" in verdict.message
    assert "node 0 died; node 1 died; node 2 died" in verdict.message


def test_drained_nodes_are_never_charged_to_a_candidate():
    job = make_job()
    job.moves += ["drained"] * 2
    assert conclude_losses(job) is None
    job.moves.append("drained")
    assert conclude_losses(job).outcome is Outcome.HARNESS_ERROR


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
    built = Built(ahead=BuiltAhead(builds={KEY: result}), packed=pack_builds(there, [KEY, "not kept"]))
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
