"""What the shipped prompts say, and what a broken one is told."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

import harness
from harness.domain import PROBLEM_SETTINGS, Language, Problem, UsageError
from harness.generate.extraction.extractor import find_code
from harness.generate.prompting import find_gpu, list_prompts, read_host_facts, render_prompt
from harness.hardware.gpus import GPU_MODELS
from harness.languages import LANGUAGES
from harness.problems.discovery import parse_problem

PROMPTS = Path(harness.__file__).resolve().parent.parent / "prompts"
SHIPPED = ("notebook", "plain", "script", "strict", "tips")
HOST = read_host_facts() | {
    "python": "3.11.9", "torch": "2.9.1", "cuda": "13.0", "compiler": "g++ 13", "cpu": "A CPU", "cores": "8",
    "simd": "avx2",
}  # fmt: skip
SOURCE = '''"""Adds {{ one }}."""

import torch

SMALL = {
    "n": 3,
}
n = 1024
TOLERANCE = {"factor": 8.0}


class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1
'''
PROBLEMS = PROMPTS.parent / "reference_models"
ALL_SETTINGS = dict.fromkeys(PROBLEM_SETTINGS, (2, "normal"))
PROBLEM = Problem(name="add", suite="core", source=SOURCE)


def _render(prompt: str, language: Language = "cuda", gpu: str | None = None, prompts_dir: Path = PROMPTS) -> str:
    facts = find_gpu(gpu) if gpu else None
    return render_prompt(PROBLEM, prompt=prompt, language=language, gpu=facts, host=HOST, prompts_dir=prompts_dir).text


def _render_source(source: str) -> str:
    problem = Problem(name="some", suite="core", source=source)
    return render_prompt(problem, prompt="plain", language="cuda", gpu=None, host=HOST, prompts_dir=PROMPTS).text


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder of prompts with one that a test fills."""
    (tmp_path / "mine").mkdir()
    return tmp_path


def test_the_shipped_prompts_are_found_by_name() -> None:
    assert list_prompts(PROMPTS) == SHIPPED


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("prompt", SHIPPED)
def test_a_prompt_holds_the_reference_one_example_and_the_entry_point(prompt: str, language: Language) -> None:
    text = _render(prompt, language, "H100")
    assert "return x + 1" in text
    assert text.count("class ModelNew(") == 1
    assert (PROMPTS / "_shared" / f"example_{language}.py").read_text().strip() in text
    assert "undefined" not in text.lower()
    blocks = text.split("```")  # each is closed, and parses
    assert len(blocks) % 2 == 1
    for block in blocks[1::2]:
        ast.parse(block.removeprefix("python\n"))


def test_settings_of_the_harness_are_not_shown_in_prompts() -> None:
    text = _render("plain")
    assert "SMALL" not in text
    assert "TOLERANCE" not in text
    assert "n = 1024" in text


@pytest.mark.parametrize("path", sorted(PROBLEMS.glob("*/*.py")), ids=lambda path: path.stem)
def test_no_setting_of_any_problem_is_shown(path: Path) -> None:
    declared = "".join(f"# about {name}\n{name} = {value!r}  # because\n" for name, value in ALL_SETTINGS.items())
    source = f"{path.read_text()}\n\n{declared}"
    text = _render_source(source)
    assert [name for name in PROBLEM_SETTINGS if name in text] == []
    assert "# about" not in text
    assert "# because" not in text
    assert "def get_init_inputs" in text


CASES = """rows, columns = 16, 32
CASES = [{"name": "given"}, {"name": "half", "sizes": {"rows": 99}, "dtype": "bfloat16", "timed": False}]
RANGES = {"columns": (40, 80, 8)}
def get_cases():
    return []
"""


@pytest.mark.parametrize("has_tools", [True, False])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_reader_with_tools_is_told_to_call_them_instead_of_answering(language: Language, has_tools: bool) -> None:
    text = render_prompt(
        PROBLEM, prompt="plain", language=language, gpu=None, host=HOST, prompts_dir=PROMPTS, has_tools=has_tools
    ).text
    assert ("`submit`" in text, "code block" in text) == (has_tools, not has_tools)


@pytest.mark.parametrize("prompt", list_prompts(PROMPTS))
def test_prompt_lists_cases_without_their_code(prompt: str) -> None:
    source = next(PROBLEMS.glob("*/softmax.py")).read_text() + CASES
    problem = parse_problem(source, Path("softmax.py"), "mine")
    for language in LANGUAGES:
        text = render_prompt(problem, prompt=prompt, language=language, gpu=None, host=HOST, prompts_dir=PROMPTS).text
        assert "- given: as written\n- half: rows=99, bfloat16 (not timed)\n" in text
        assert "- secret: columns=40 to 80 in steps of 8 (drawn anew for each check)\n" in text
        assert "get_cases" not in text


def test_a_comment_that_is_not_attached_to_a_setting_is_shown() -> None:
    source = f"{SOURCE}\n\n# rows are long\n\n# for the harness\nTRAINING = True\nm = 2  # columns\n"
    text = _render_source(source)
    assert "# rows are long" in text
    assert "m = 2  # columns" in text
    assert "# for the harness" not in text


def test_the_text_of_a_problem_is_no_template() -> None:
    assert "Adds {{ one }}." in _render("plain")


def test_the_strict_prompt_states_versions_and_gpu() -> None:
    text = _render("strict", "cuda", "H100")
    assert "Python 3.11.9, PyTorch 2.9.1, CUDA 13.0" in text
    assert "H100, compute capability 9.0, 132 multiprocessors" in text
    assert "80 GB, 3350 GB/s" in text


def test_an_unknown_gpu_is_not_made_up() -> None:
    assert "GPU: not stated" in _render("strict", "cuda")


def test_the_strict_prompt_for_the_cpu_states_the_cpu() -> None:
    assert "CPU: A CPU, 8 threads, widest vector extension avx2" in _render("strict", "cpp", "H100")


@pytest.mark.parametrize(
    ("language", "device"),
    [
        ("cuda", '"cuda"'),
        ("triton", '"cuda"'),
        ("cpp", '"cpu"'),
        ("torch", '"cuda" if torch.cuda.is_available() else "cpu"'),
    ],
)
def test_the_script_prompt_checks_on_the_device_of_the_language(language: Language, device: str) -> None:
    assert f"DEVICE = {device}\n\n" in _render("script", language)


def test_a_template_of_a_language_replaces_the_one_for_all(own: Path) -> None:
    (own / "mine" / "prompt.jinja").write_text("{{ rules.title }} for all")
    (own / "mine" / "cuda.jinja").write_text("of its own")
    texts = [_render("mine", language, prompts_dir=own) for language in ("triton", "cuda")]
    assert texts == ["Triton for all", "of its own"]


def test_an_unknown_prompt_suggests_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no prompt 'plian' in .*did you mean plain"):
        _render("plian")


def test_an_undefined_variable_names_template_line_and_variable(own: Path) -> None:
    (own / "mine" / "cuda.jinja").write_text("one\n{{ refernce }}\n")
    with pytest.raises(UsageError, match=r"mine/cuda\.jinja, line 2: 'refernce' is undefined"):
        _render("mine", prompts_dir=own)


def test_an_undefined_variable_in_an_included_piece_names_that_piece(own: Path) -> None:
    (own / "mine" / "cuda.jinja").write_text('{% include "piece.jinja" %}')
    (own / "mine" / "piece.jinja").write_text("{{ gpu_name }}")
    with pytest.raises(UsageError, match=r"mine/piece\.jinja, line 1: 'gpu_name' is undefined"):
        _render("mine", prompts_dir=own)


def test_a_template_that_is_no_jinja_is_an_error_with_its_line(own: Path) -> None:
    (own / "mine" / "cuda.jinja").write_text("one\n{% if %}\n")
    with pytest.raises(UsageError, match=r"mine/cuda\.jinja, line 2"):
        _render("mine", prompts_dir=own)


def test_a_missing_include_is_an_error(own: Path) -> None:
    (own / "mine" / "cuda.jinja").write_text('{% include "gone.jinja" %}')
    with pytest.raises(UsageError, match=r"prompt template .*gone\.jinja"):
        _render("mine", prompts_dir=own)


def test_a_prompt_without_the_language_says_so(own: Path) -> None:
    (own / "mine" / "cuda.jinja").write_text("x")
    with pytest.raises(UsageError, match=r"prompt 'mine' has no cpp\.jinja"):
        _render("mine", "cpp", prompts_dir=own)


def test_a_copied_prompt_works_from_its_path_and_can_be_changed(tmp_path: Path) -> None:
    copy = tmp_path / "copied"
    shutil.copytree(PROMPTS / "tips", copy)
    assert _render(str(copy)) == _render("tips")
    (copy / "tips_cuda.jinja").write_text("Do your best.\n")
    assert "Do your best." in _render(str(copy))


@pytest.mark.parametrize("name", ["RTX 4090", "rtx4090", "rtx-4090"])
def test_a_gpu_is_found_however_its_name_is_written(name: str) -> None:
    assert find_gpu(name).name == "RTX 4090"


def test_an_unknown_gpu_suggests_the_nearest_and_lists_all() -> None:
    with pytest.raises(UsageError, match=r"did you mean L40S\? choose among V100, T4, A10, A100, L4, L40S"):
        find_gpu("L40-S2")


def test_the_table_of_gpus_has_sensible_values() -> None:
    listed = [find_gpu(model.name) for model in GPU_MODELS if model.bandwidth_gb_s is not None]
    assert {gpu.name for gpu in listed} >= {"A100", "H100", "H200", "L4", "L40S", "RTX 4090", "B200"}
    for gpu in listed:
        assert gpu.fp32_tflops is not None
        assert gpu.tf32_tflops is not None
        assert gpu.bf16_tflops is not None
        assert gpu.fp32_tflops <= gpu.tf32_tflops < gpu.bf16_tflops
        assert 0 < gpu.shared_per_block_kb < gpu.shared_per_sm_kb
        # float32 lanes of all multiprocessors at 1 to 3 GHz: a typing error would fall out of it
        lanes = 64 if gpu.arch == "8.0" else 128
        assert 1.0 < gpu.fp32_tflops * 1e3 / (2 * lanes * gpu.sms) < 3.0


def test_host_facts_are_those_of_this_interpreter() -> None:
    facts = read_host_facts()
    assert facts["python"].startswith("3.")
    assert facts["torch"][0].isdigit()
    assert facts["cores"].isdigit()


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_worked_example_is_itself_a_program(language: Language) -> None:
    source = (PROMPTS / "_shared" / f"example_{language}.py").read_text()
    found = find_code(source)
    assert found is not None
    assert found.source == source
