"""The script that installs what tests need of the system, on machines with and without a package manager."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "system-packages"


@pytest.fixture
def run(tmp_path):
    """Runs it where these programs are all that there is; what each was called with is in `calls`."""

    def run_with(*, user, **programs):
        for name, script in {"id": f"echo {user}", **programs}.items():
            path = tmp_path / name.replace("__", "++").replace("_", "-")
            path.write_text(f'#!/bin/sh\necho "$(basename "$0") $*" >> "{tmp_path}/calls"\n{script}\n')
            path.chmod(0o755)
        (tmp_path / "basename").symlink_to(shutil.which("basename"))
        (tmp_path / "calls").write_text("")
        finished = subprocess.run(
            ["/bin/sh", SCRIPT], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
        )
        calls = [line for line in (tmp_path / "calls").read_text().splitlines() if line.startswith("apt-get")]
        return finished.returncode, finished.stderr, calls

    return run_with


def test_missing_package_is_installed(run):
    code, _, calls = run(user=0, apt_get="exit 0", chromium="exit 0")
    assert (code, calls[0]) == (0, "apt-get update")
    assert calls[1].startswith("apt-get install") and calls[1].endswith(" g++")


def test_where_all_is_there_nothing_is_asked_for(run):
    assert run(user=0, apt_get="exit 1", google_chrome="exit 0", c__="exit 0") == (0, "", [])


@pytest.mark.parametrize(
    ("machine", "why"),
    [
        ({"user": 0}, "no apt-get"),
        ({"user": 1000, "apt_get": "exit 0"}, "only root"),
        ({"user": 0, "apt_get": "exit 100"}, "apt-get failed"),
    ],
    ids=["no apt-get", "no root", "no network"],
)
def test_failed_installation_names_package_reason_and_command(run, machine, why):
    code, message, _ = run(**machine)
    assert code == 1
    assert why in message
    assert "apt-get install chromium g++" in message
