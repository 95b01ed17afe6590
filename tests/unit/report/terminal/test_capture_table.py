"""The table and notes of `harness capture`."""

import io
from pathlib import Path

import pytest

from harness.report.terminal.capture import list_capture_notes, render_capture

GROUP = {
    "kind": "WhisperEncoderLayer", "paths": ["encoder.layers.0"], "problem": "whisper_encoder_layer", "calls": 120.0,
    "share": 0.995, "own_share": 0.0, "time_us": 107246.0, "peak_fraction": 0.31, "gain_limit": 108.61,
    "bound": "overhead", "reason": "", "opaque": "", "left_out": [],
}  # fmt: skip


def make_record(*groups):
    facts = {"model": "Whisper", "hardware": "CPU", "device": "cpu", "wall_us": 1e5, "calls": 7}
    return facts | {"groups": [GROUP | one for one in groups]}


def render(record):
    from rich.console import Console

    page = io.StringIO()
    Console(file=page, width=80).print(render_capture(record))
    return page.getvalue()


def test_long_names_are_whole_in_80_columns():
    _, _, line = render(make_record({"kind": "LlamaRotaryEmbeddingChain"})).splitlines()
    assert line.split() == ["LlamaRotaryEmbeddingChain", "120", "99.5%", "107246", ">100x", "31%", "overhead", "yes"]


@pytest.mark.parametrize(
    ("path", "name"), [("layers.0.mlp.up", "Linear up"), ("net.2", "Linear net.2"), ("0", "Linear 0")]
)
def test_classes_of_several_lines_are_told_by_the_name_of_their_module(path, name):
    linear = {"kind": "Linear", "problem": ""}
    shown = render(make_record(linear | {"paths": [path]}, linear | {"paths": ["head"]}))
    assert name in shown
    assert "Linear head" in shown


def test_modules_of_one_name_are_told_by_more_of_their_paths():
    paths = ("up.0.conv", "down.0.conv", "1.norm", "2.norm")
    shown = render(make_record(*({"kind": "Conv", "problem": "", "paths": [path]} for path in paths)))
    assert all(f"Conv {path}" in shown for path in paths)


def test_a_reason_is_stated_once():
    reason = {"problem": "", "reason": "it is large", "left_out": ["some calls"]}
    record = make_record(reason, reason, reason | {"kind": "Mlp"}, reason | {"kind": "Small", "share": 0.001})
    notes = list(list_capture_notes(record, Path("net"), "capture.json"))
    assert notes[1] == "no problem for WhisperEncoderLayer, Mlp: it is large"
