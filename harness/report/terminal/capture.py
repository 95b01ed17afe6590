"""Renders captured models."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from harness.report.terminal.tables import make_table, style_text
from harness.report.values import count, format_fixed, format_rate

MOST_GAIN = 100  # that is told apart
CHAIN_SHARE = 0.03  # of operators in the forward of a module with others inside
LISTED_SHARE = 0.01  # modules with less time and without a problem are left out


def render_capture(record: Mapping[str, Any]) -> Table:
    table = make_table("module", ">calls", ">time", ">us", ">at most", ">of peak", "=problem")
    groups = record["groups"]
    names = name_groups(groups)
    for group, name in zip(groups, names, strict=True):
        if not is_listed(group):
            continue
        numbers = (
            format_fixed(group["calls"], 0),
            format_rate(group["share"]),
            format_fixed(group["time_us"], 0 if group["time_us"] >= 100 else 1),
            f"{format_fixed(group['gain_limit'], 2)}x" if group["gain_limit"] < MOST_GAIN else f">{MOST_GAIN}x",
            f"{format_rate(group['peak_fraction'], 0)} {group['bound']:8}",
        )
        table.add_row(style_text(name), *numbers, "yes" if group["problem"] else "-")
    return table


def is_listed(group: Mapping[str, Any]) -> bool:
    return group["share"] >= LISTED_SHARE or bool(group["problem"])


def name_groups(groups: Sequence[Mapping[str, Any]]) -> list[str]:
    """Add the end of the first module's path where a class has several groups, as much as tells them apart."""
    ends = [[f"{one['kind']} {end}" for end in _list_ends(one["paths"][0])] for one in groups]
    kinds, counts = Counter(one["kind"] for one in groups), Counter(end for own in ends for end in own)
    return [
        one["kind"] if kinds[one["kind"]] == 1 else next((end for end in own if counts[end] == 1), own[-1])
        for one, own in zip(groups, ends, strict=True)
    ]


def _list_ends(path: str) -> list[str]:
    """Return ends of the path that begin with a name, not with a number, shortest first, and the whole path."""
    parts = path.split(".")
    starts = [at for at in reversed(range(1, len(parts))) if not parts[at].isdigit()]
    return [".".join(parts[at:]) for at in (*starts, 0)]


def list_capture_notes(record: Mapping[str, Any], folder: Path, name: str) -> Iterator[str]:
    """Yield lines below the table."""
    yield (
        f"{record['model']} on {record['hardware']}: {format_fixed(record['wall_us'] / 1e3, 2)} ms a call, mean of "
        f"{record['calls']}"
    )
    if record["device"] != "cpu":
        yield f"the GPU works {format_rate(record['device_us'] / record['wall_us'])} of that time; shares are of it"
    listed = list(filter(is_listed, record["groups"]))
    for reason, kinds in _join((one["reason"], one["kind"]) for one in listed if one["reason"]):
        yield f"no problem for {kinds}: {reason}"
    for group in listed:
        if group["reason"] and CHAIN_SHARE <= group["own_share"] < group["share"]:
            share = format_rate(group["own_share"])
            why = group["opaque"] or "they are products, or single operators"
            yield f"{share} of the time is in operators of {group['kind']}.forward itself, no chains: {why}"
    for left_out, problems in _join((text, one["problem"]) for one in listed for text in one["left_out"]):
        yield f"{problems}: {left_out}"
    written = [group["problem"] for group in record["groups"] if group["problem"]]
    yield f"{folder / name} and {count(len(written), 'problem')}: {', '.join(written) or 'none'}"


def _join(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield each text once, with all names that it is about."""
    names: dict[str, dict[str, None]] = {}
    for text, name in pairs:
        names.setdefault(text, {})[name] = None
    yield from ((text, ", ".join(found)) for text, found in names.items())


def render_apply(record: Mapping[str, Any]) -> Table:
    table = make_table("kernel", ">id", ">alone", ">predicted", ">in the model", "=result")
    for one in record["kernels"]:
        numbers = ("-" if one[name] is None else f"{format_fixed(one[name], 3)}x" for name in ("alone", "predicted"))
        result = "left out" if one["reason"] else "applied"
        table.add_row(style_text(one["problem"]), str(one["evaluation"]), *numbers, _gain(one["in_model"]), result)
    return table


def _gain(gain: Mapping[str, float] | None) -> str:
    if gain is None:
        return "-"
    low, high = (format_fixed(gain[name], 3) for name in ("low", "high"))
    return f"{format_fixed(gain['gain'], 3)}x [{low}, {high}]"


def list_apply_notes(record: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """Yield lines below the table."""
    for reason, kernels in _join((one["reason"], one["problem"]) for one in record["kernels"] if one["reason"]):
        yield f"left out ({reason}): {kernels}"
    if record["missing"]:
        yield f"no correct kernel on this kind of device: {', '.join(record['missing'])}"
    for mode, gain in record["modes"].items():
        if isinstance(gain, str):
            yield f"{record['model']}, {mode}: not measured: {gain}"
            continue
        times = " -> ".join(format_fixed(gain[name] / 1e3, 3) for name in ("before_us", "after_us"))
        yield f"{record['model']}, {mode}: {_gain(gain)}, {times} ms a call"
    applied = [one for one in record["kernels"] if not one["reason"]]
    if record["modes"] and all(one["predicted"] for one in applied):
        yield f"predicted from the shares: {format_fixed(record['predicted'], 3)}x"
    if record["tokens"] is not None:
        yield f"greedy tokens: the first {record['tokens']} of {record['asked_tokens']} are equal"
    if record["losses"]:
        worst = max(abs(ours - theirs) for theirs, ours in record["losses"])
        yield f"losses of {len(record['losses'])} steps: off by {worst:.3g} at most"
    if not applied:
        yield "no kernel is left: the model stays as it is"
    else:
        yield f"{folder / 'applied'}: import it and call apply(model); it does not need harness"
