"""The isolation of compilers: a source cannot have files of the user, the evaluator or other builds compiled into it.

The honest build beside each attempt shows that this isolation lets a compiler work.
"""

import ctypes
import os
from pathlib import Path

import pytest

from harness.builder.builder import Builder
from harness.builder.toolchain import probe_toolchain
from harness.domain import BuildRequest

KINDS = ("private_root", "filters")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def toolchain():
    return probe_toolchain()


@pytest.fixture(scope="module")
def secret(tmp_path_factory):
    """A header in a folder like a home, open to everybody."""
    path = tmp_path_factory.mktemp("home") / "secret.h"
    path.write_text("#define SECRET 42\n")
    return path


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def builder(kind, isolation_of, toolchain, tmp_path, needs_compiler):
    from harness.sandbox.policy import clean_environment, interpreter_folders

    return Builder(
        cache=tmp_path / "cache",
        toolchain=toolchain,
        wrap=isolation_of(kind).wrap,
        readable=interpreter_folders(),
        environment=clean_environment,
        timeout_s=120,
    )


def build(builder, source, **more):
    request = BuildRequest(
        name="attempt", cpp_sources=(source,), no_implicit_headers=True, is_python_module=False, **more
    )
    return builder.build(request)


@pytest.mark.quick(1)
def test_a_source_sees_no_file_outside_although_the_compiler_works(kind, builder, secret, tmp_path):
    (tmp_path / "cache" / "aa").mkdir(parents=True)
    (tmp_path / "cache" / "aa" / "other.h").write_text("#define OTHER 1\n")
    outside = [secret, tmp_path / "cache/aa/other.h", ROOT / "README.md", ROOT / "harness/evaluation/evaluator.py"]
    if kind == "filters":
        outside = []  # a file that is there but must not be read ends the compiler: see below
    checks = "\n".join(f'#if __has_include("{path}")\n#error seen {path}\n#endif' for path in outside)
    result = build(builder, f'{checks}\nextern "C" int seven() {{ return 7; }}\n')
    assert result.status == "built", result.log[-2000:]
    assert ctypes.CDLL(result.extension).seven() == 7


@pytest.mark.parametrize(
    ("how", "wanted"),
    [
        ("#include", "home"),
        ("assembler", "/etc/shadow"),
        ("#include", "/proc/1/environ"),
        pytest.param("assembler", "home", marks=pytest.mark.slow),
        pytest.param("#include", "/etc/shadow", marks=pytest.mark.slow),
        pytest.param("assembler", "/proc/1/environ", marks=pytest.mark.slow),
    ],
)
@pytest.mark.quick(1)
def test_no_file_outside_gets_into_a_build(builder, secret, wanted, how):
    path = secret if wanted == "home" else wanted
    if not os.access(path, os.R_OK):
        pytest.skip(f"{path} is closed to this user anyway")
    source = f'#include "{path}"' if how == "#include" else f'asm(".incbin \\"{path}\\"");'
    result = build(builder, f'{source}\nextern "C" int seven() {{ return 7; }}\n')
    assert result.status == "failed"
    assert "define SECRET" not in result.log
    assert "No such file" in result.log or "Permission denied" in result.log or "file not found" in result.log
