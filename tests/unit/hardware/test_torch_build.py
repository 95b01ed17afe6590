import torch

from harness.builder.toolchain import find_cuda_home, import_torch_extension, probe_toolchain
from harness.hardware.host import list_gpus, read_torch_build


def test_the_build_of_torch_is_known_without_importing_it():
    found = read_torch_build()
    assert (found.version, found.cuda) == (str(torch.__version__), torch.version.cuda)


def test_the_driver_lists_the_gpus_that_torch_can_use():
    assert len(list_gpus()) == torch.cuda.device_count()


def test_torch_builds_with_the_toolkit_that_was_probed():
    assert import_torch_extension().CUDA_HOME == find_cuda_home() == probe_toolchain().cuda_home


def test_cuda_home_is_the_given_toolkit_or_that_of_nvcc(tmp_path, monkeypatch):
    (tmp_path / "lib64").mkdir()
    (tmp_path / "lib64" / "libcudart.so").touch()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nvcc").touch(mode=0o755)
    expected = str(tmp_path) if torch.version.cuda else None
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find_cuda_home() == expected
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert find_cuda_home() == expected
