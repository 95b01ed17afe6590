"""Which GPU target a CUDA extension is compiled for: the program's choice as its device would load it."""

import pytest

from harness.builder.targets import name_architecture, require_architecture, select_target, use_device_target
from harness.domain import BuildRequest, UsageError


def select(*flags, device="9.0a"):
    request, reason = select_target(BuildRequest(name="x", extra_cuda_cflags=flags), device)
    return list(request.extra_cuda_cflags), reason


def generate(virtual, code):
    return f"-gencode=arch=compute_{virtual},code={code}"


@pytest.mark.parametrize(
    ("capability", "architecture"),
    [((8, 0), "8.0"), ((8, 9), "8.9"), ((9, 0), "9.0a"), ((10, 0), "10.0a"), ((10, 3), "10.3a"), ((12, 0), "12.0a")],
)
def test_a_device_with_specific_instructions_is_built_for_with_these(capability, architecture):
    version = architecture.replace(".", "")
    assert name_architecture(capability) == architecture
    assert select("-O3", device=architecture) == ([generate(version, f"sm_{version}"), "-O3"], None)


@pytest.mark.parametrize(
    "flags",
    [
        (generate("90", "sm_90"),),
        (generate("80", "sm_80"), generate("90", "sm_90")),
        ("-gencode", "arch=compute_90,code=sm_90"),
        ("-gencode arch=compute_90,code=sm_90",),
        ("--generate-code=arch=compute_90,code=[sm_90,compute_90]",),
        ("-gencode=arch=compute_90,code=\\'sm_90,compute_90\\'",),
        ("-gencode \"arch=compute_90,code=sm_90\"", generate("90", "compute_90")),
        ("-arch=sm_90",),
        ("-arch sm_90",),
        ("--gpu-architecture", "sm_90"),
        ("-arch=compute_90", "-code=sm_90,compute_90"),
    ],
)  # fmt: skip
def test_every_spelling_of_a_target_selects_it(flags):
    assert select("-O3", *flags, "-lineinfo") == ([generate("90", "sm_90"), "-O3", "-lineinfo"], None)


@pytest.mark.parametrize(
    ("device", "asked", "selected"),
    [
        ("9.0a", ("90a", "sm_90a"), ("90a", "sm_90a")),
        ("9.0", ("90a", "sm_90a"), ("90a", "sm_90a")),
        ("8.9", ("80", "sm_80"), ("80", "sm_80")),
        ("9.0a", ("80", "compute_80"), ("80", "sm_90")),
        ("9.0a", ("90a", "compute_90a"), ("90a", "sm_90a")),
        ("10.3a", ("100f", "sm_100f"), ("100f", "sm_100f")),
        ("10.3a", ("100f", "compute_100f"), ("100f", "sm_103f")),
        ("12.1a", ("120", "sm_120"), ("120", "sm_120")),
    ],
)
def test_code_that_the_device_loads_is_compiled(device, asked, selected):
    assert select(generate(*asked), device=device) == ([generate(*selected)], None)


def test_a_cubin_is_preferred_to_a_newer_ptx():
    assert select(generate("86", "compute_86"), generate("80", "sm_80"), device="8.6") == (
        [generate("80", "sm_80")], None
    )  # fmt: skip


@pytest.mark.parametrize(
    ("device", "asked"),
    [
        ("9.0a", ("80", "sm_80")),
        ("8.0", ("86", "sm_86")),
        ("8.0", ("90", "compute_90")),
        ("10.0a", ("90a", "compute_90a")),
        ("10.3a", ("100a", "sm_100a")),
        ("12.0a", ("100f", "compute_100f")),
    ],
)
def test_code_that_the_device_cannot_load_is_named_with_the_remedy(device, asked):
    flags, reason = select(generate(*asked), device=device)
    plain = device.removesuffix("a")
    assert reason.startswith(f"the program requests {asked[1]}, which this GPU of compute capability {plain} cannot")
    assert f"add {plain} to TORCH_CUDA_ARCH_LIST" in reason
    assert len(flags) == 1


@pytest.mark.parametrize(
    ("device", "asked", "selected"),
    [
        ("9.0a", ("70", "sm_70"), ("90a", "sm_90a")),
        ("9.0a", ("100a", "sm_100a"), ("100a", "sm_100a")),
        ("10.0a", ("90a", "sm_90a"), ("90a", "sm_90a")),
    ],
)
def test_code_without_the_device_target_is_compiled_as_requested_or_newer(device, asked, selected):
    assert select(generate(*asked), device=device)[0] == [generate(*selected)]


def test_the_device_target_replaces_every_requested_one():
    flags = ("-O3", generate("120a", "sm_120a"), "-arch sm_100", "-lineinfo")
    request = use_device_target(BuildRequest(name="x", extra_cuda_cflags=flags), "9.0a")
    assert list(request.extra_cuda_cflags) == [generate("90a", "sm_90a"), "-O3", "-lineinfo"]


@pytest.mark.parametrize("flag", ["-arch=native", "-arch=all", "-arch=all-major"])
def test_target_that_includes_every_device_becomes_the_device_target(flag):
    assert select(flag, "-O3") == ([generate("90a", "sm_90a"), "-O3"], None)


@pytest.mark.parametrize("flag", ["-arch=sm_xy", "-gencode=nonsense", "-gencode=arch=lto_90,code=lto_90", "-arch"])
def test_invalid_target_is_passed_to_nvcc(flag):
    assert select(flag) == ([generate("90a", "sm_90a"), flag], None)


def test_flags_of_other_programs_stay_as_they_are():
    flags = ("-Xcompiler -march=native", "-Xptxas -O3", '-DNAME="a  b"')
    assert select(*flags) == ([generate("90a", "sm_90a"), *flags], None)


@pytest.mark.parametrize("text", ["sm_90", "9", "90", "9.0+PTX", "8.0;9.0", ""])
def test_an_architecture_of_the_command_line_has_one_form(text):
    with pytest.raises(UsageError, match="--arch"):
        require_architecture(text)
