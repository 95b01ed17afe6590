import pytest

from harness.domain import UsageError
from harness.pipeline.options import read_baselines

MODULE = "class {name}:\n    pass\n"


def test_several_baselines_keep_their_order():
    assert [one.name for one in read_baselines("compile-max-autotune, eager,library")] == [
        "compile-max-autotune",
        "eager",
        "library",
    ]


@pytest.mark.parametrize("entry", ["Model", "ModelNew"])
def test_a_module_is_named_by_its_file_and_content(tmp_path, entry):
    path = tmp_path / "mine.py"
    path.write_text(MODULE.format(name=entry))
    (first,) = read_baselines(str(path))
    assert first.name.startswith("mine@")
    assert (first.entry, first.source) == (entry, path.read_text())
    path.write_text(f"# changed\n{path.read_text()}")
    assert read_baselines(str(path))[0].name != first.name


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("compil", "unknown baseline 'compil'; did you mean compile"),
        ("", "choose among eager, eager-tf32, compile, compile-max-autotune, library"),
        ("eager,eager", "--baseline names eager twice"),
        ("missing.py", "cannot read the baseline missing.py: No such file"),
    ],
)
def test_a_baseline_that_cannot_be_used_is_a_usage_error(names, message):
    with pytest.raises(UsageError, match=message):
        read_baselines(names)


@pytest.mark.parametrize(("text", "message"), [("x = 1\n", "no class ModelNew or Model"), ("def:\n", "cannot read")])
def test_a_file_without_a_model_is_no_baseline(tmp_path, text, message):
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(UsageError, match=message):
        read_baselines(str(tmp_path / "mine.py"))
