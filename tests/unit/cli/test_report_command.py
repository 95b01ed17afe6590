"""`harness report`, as a user runs it."""

import json
import signal
import socket
import time
import urllib.error
import urllib.request

import pytest

from harness.cli.main import run_command
from harness.store.results import ResultStore


@pytest.fixture
def run(tmp_path, monkeypatch, capsys, evaluation_of):
    monkeypatch.chdir(tmp_path)
    with ResultStore.open(tmp_path / "results") as store:
        store.record(evaluation_of("correct", 2.0), "x = 1\n")
        store.record(evaluation_of("timeout", run="other"), "x = 2\n")

    def run_line(*arguments):
        code = run_command(["report", *arguments])
        return code, capsys.readouterr()

    return run_line


def test_one_file_is_written_and_named(run, tmp_path):
    code, output = run()
    assert code == 0
    assert output.out.startswith("report.html: 2 evaluations, 0.")
    assert "Open it in a browser." in output.out
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["report.html", "results"]


def test_runs_filters_and_the_place_are_chosen(run, tmp_path):
    code, output = run("demo", "--where", "speedup > 1", "-o", "sub/a.html", "--json")
    record = json.loads(output.out)
    assert (code, record["path"], record["evaluations"], record["with_details"]) == (0, "sub/a.html", 1, 1)
    assert record["size_bytes"] == (tmp_path / "sub" / "a.html").stat().st_size


def test_report_names_what_does_not_fit(run):
    _, output = run("--max-mb", "0.1")
    assert "To stay within --max-mb, 2 lack their answer and 2 their details" in output.out
    assert "To stay within" not in run("--max-mb", "0")[1].out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nobody",), "no run 'nobody' in results/harness.db; known: demo, other"),
        (("--price", "model"), "expected MODEL=IN/OUT in dollars"),
        (("--price", "model=1/-2"), "expected MODEL=IN/OUT in dollars"),
        (("--where", "sped > 1"), "unknown column 'sped'"),
        (("--problems-dir", "nowhere"), "no folder nowhere, given with --problems-dir"),
    ],
)
def test_wrong_usage_is_explained(run, arguments, message):
    code, output = run(*arguments)
    assert code == 2
    assert message in output.err


@pytest.mark.parametrize(
    "options", [("--results-dir", "nothing"), ("--model", "nosuch"), ("demo", "--where", "speedup > 99")]
)
def test_without_an_evaluation_no_page_is_written(run, tmp_path, options):
    code, output = run(*options)
    assert code == 2
    assert "; report.html is not written" in output.err
    assert not (tmp_path / "report.html").exists()


def test_port_in_use_is_named(run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, output = run("--serve", "--port", str(port))
    assert code == 2
    assert f"cannot listen on port {port}: Address already in use; choose another one with --port" in output.err


def test_served_page_is_sent_again_only_after_a_change(tmp_path, start_harness, evaluation_of):
    process = start_harness(["report", "--serve", "--port", "0", "--json"])
    address = json.loads(process.stdout.readline())["address"]
    assert fetch(address) == (503, "")
    with ResultStore.open(tmp_path / "results") as store:
        store.record(evaluation_of("correct", 2.0), "x = 1\n")
        status, state = fetch(address)
        assert (status, fetch(address, {"If-None-Match": state})[0]) == (200, 304)
        store.record(evaluation_of("timeout", sample=1))
        while fetch(address, {"If-None-Match": state})[0] == 304:
            time.sleep(0.1)
    assert fetch(address, {"Host": "example.org"})[0] == 403
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0


def fetch(address, headers=()):
    """Return status and ETag."""
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=dict(headers)), timeout=20) as answer:
            return answer.status, answer.headers["ETag"]
    except urllib.error.HTTPError as error:
        return error.code, error.headers["ETag"]
