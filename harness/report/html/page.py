"""Writes `report.html`, a self-contained page about some evaluations, or serves it, with new evaluations.

It allows only scripts by hash. Beyond the size limit, answers and logs are omitted, then details.
"""

import gc
import html
import json
import time
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

import harness
from harness.analysis.metrics import Price
from harness.analysis.ranking import find_best_turns, read_requested_problems
from harness.domain import HarnessError, Outcome, StoreError, UsageError
from harness.domain.files import raising, replace_text
from harness.report.html.chunks import pack_shards
from harness.report.html.encoding import clean, encode_numbers, encode_texts, pack
from harness.report.html.overview import Material, describe_overview
from harness.report.terminal.capture import is_listed, name_groups
from harness.store.columns import COLUMNS, ResultRow
from harness.store.completions import Spent, TurnOrigin, has_run, locate_answer, read_origin, read_spent
from harness.store.results import EVERYTHING, EvidenceRow, ResultFilter, ResultStore, explain_no_match
from harness.store.runs import check_name, locate_reference

PAGE = Path(__file__).with_name("assets")
SCRIPTS = ("vendor/d3.min.js", "vendor/plot.umd.min.js")
PARTS = (
    "data.js", "dom.js", "table.js", "code.js", "charts.js", "captured.js", "overview.js", "evaluations.js",
    "candidate.js", "main.js",
)  # fmt: skip
LIVE_PART = "live.js"
DEFAULT_MAX_BYTES = 30_000_000
LONGEST_MESSAGE = 160
SHARD_NUMBER_BYTES = 1  # of the shard number per evaluation; equal for neighbours, so it compresses well
_TEXTS = [name for name, column in COLUMNS.items() if not column.is_number and name != "message"]
_NUMBERS = [name for name, column in COLUMNS.items() if column.is_number]
_LIMITS = ("moved_bytes", "flops", "bandwidth_gb_s", "tflops")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportChoice:
    """What a page is about. `generated_dir` provides prompts and answers, `problems_dirs` references, `captured_dir`
    captured models; missing files are omitted. With `max_bytes` None, the size is unlimited.
    """

    runs: Collection[str] = ()
    where: ResultFilter = EVERYTHING
    generated_dir: Path | None = None
    problems_dirs: Sequence[Path] = ()
    captured_dir: Path | None = None
    prices: Sequence[Price] = ()
    title: str = ""
    max_bytes: int | None = DEFAULT_MAX_BYTES


EVERY_RUN = ReportChoice()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPage:
    html: str
    evaluations: int
    with_details: int
    with_answer: int

    @property
    def size_bytes(self) -> int:
        return len(self.html.encode())


@contextmanager
def _pause_collection() -> Iterator[None]:
    """Pause garbage collection: 100,000 rows live until the end, and scanning them would double the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def render_report(store: ResultStore, path: Path, choice: ReportChoice = EVERY_RUN, *, now: datetime) -> ReportPage:
    """Raises UsageError without a match, and StoreError."""
    try:
        page = make_page(store, choice, now=now)
    except UsageError as error:
        raise UsageError(f"{error}; {path} is not written") from error
    with raising(StoreError, f"write {path}", "; choose another path with --output"):
        replace_text(path, page.html)
    return page


@_pause_collection()
def make_page(store: ResultStore, choice: ReportChoice, *, now: datetime, state: str = "") -> ReportPage:
    """With `state`, of stored results, the page asks its server for a later one. Raises UsageError and StoreError."""
    rows = _choose_runs(store, choice.where, choice.runs)
    if not rows:
        raise UsageError(explain_no_match(store, choice.where))
    material = _gather(store, rows, choice)
    fixed = _pack_fixed(store, material, choice)
    used = sum(map(len, fixed.values())) + _measure_scripts() + SHARD_NUMBER_BYTES * len(rows)
    left = None if choice.max_bytes is None else choice.max_bytes - used
    shards = pack_shards(store, material, choice.generated_dir, max_bytes=left)
    shard_numbers = {"details": shards.detail_shards, "answers": shards.answer_shards}
    numbers = {kind: [of.get(row.id, -1) for row in rows] for kind, of in shard_numbers.items()}
    blocks = fixed | {"places": pack(numbers)}
    for kind, packed in (("details", shards.details), ("answers", shards.answers)):
        blocks.update((f"{kind}-{number}", text) for number, text in enumerate(packed))
    title = choice.title or _name_report(rows)
    facts = {"title": title, "now": now, "rows": len(rows), "version": harness.__version__, "state": state}
    return ReportPage(
        html=_render_page(blocks, facts),
        evaluations=len(rows),
        with_details=len(shards.detail_shards),
        with_answer=len(shards.answer_shards),
    )


def _choose_runs(store: ResultStore, where: ResultFilter, runs: Collection[str]) -> list[ResultRow]:
    """Raises UsageError for a run without any evaluation."""
    for run in runs:
        if not store.count(ResultFilter(run=run)):
            raise UsageError(explain_no_match(store, ResultFilter(run=run)))
    rows = store.rows(where)
    return [row for row in rows if not runs or any(fnmatchcase(row.run, run) for run in runs)]


def _gather(store: ResultStore, rows: Sequence[ResultRow], choice: ReportChoice) -> Material:
    ids, generated_dir = {row.id for row in rows}, choice.generated_dir
    there = (
        set() if generated_dir is None else {run for run in {row.run for row in rows} if has_run(generated_dir, run)}
    )
    folders = {row.id: locate_answer(generated_dir, row) if row.run in there else None for row in rows}
    by_folder = {folder: read_spent(folder) for folder in set(folders.values())}
    spent = {evaluation_id: by_folder[folder] for evaluation_id, folder in folders.items()}
    return Material(
        rows=rows,
        evidence={one.id: one for one in store.evidence(choice.where) if one.id in ids},
        spent=spent,
        origins={row.id: read_origin(locate_answer(generated_dir, row), turn=row.turn) for row in rows if row.turn},
        asked={} if generated_dir is None else read_requested_problems(generated_dir, {row.run for row in rows}),
        prices=choice.prices,
    )


def _pack_fixed(store: ResultStore, material: Material, choice: ReportChoice) -> dict[str, str]:
    others = {
        "environments": _list_environments(store, material),
        "captured": _list_captured(material.rows, choice.captured_dir),
    }
    return {
        "index": pack(_describe_index(material)),
        "overview": pack(describe_overview(material) | others),
        "references": pack(_read_references(material, choice.problems_dirs, choice.generated_dir)),
    }


def _list_environments(store: ResultStore, material: Material) -> list[dict[str, Any]]:
    """Omit the session secret."""
    stored = store.environments()
    counts: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for index, row in enumerate(material.rows):
        evidence = material.evidence.get(row.id)
        entries = stored.get(evidence.environment, ()) if evidence else ()
        known = (*((name, value) for name, value in entries if name != "seed"), ("isolation", row.confinement))
        counts.setdefault((*known, ("certificate", row.certificate or "none")), []).append(index)
    ordered = sorted(counts.items(), key=lambda entry: -len(entry[1]))
    return [{"entries": clean(entries), "count": len(indices), "first": indices[0]} for entries, indices in ordered]


_CAPTURED_FACTS = ("model", "hardware", "device", "wall_us")
_GROUP_FACTS = ("calls", "share", "time_us", "peak_fraction", "gain_limit", "bound", "problem", "reason")


def _list_captured(rows: Sequence[ResultRow], captured_dir: Path | None) -> list[dict[str, Any]]:
    """Return where the time of captured models goes, what was tried, and what it brought, by suite."""
    found: list[dict[str, Any]] = []
    if captured_dir is None:
        return found
    for suite in sorted({row.suite for row in rows}):
        with suppress(OSError, ValueError, KeyError, TypeError, UsageError):  # not captured, or of another version
            folder = captured_dir / check_name("suite", suite)
            captured = json.loads((folder / "capture.json").read_text(encoding="utf-8"))
            tried = _count_tried(row for row in rows if row.suite == suite)
            applied = folder / "applied.json"
            record = json.loads(applied.read_text(encoding="utf-8")) if applied.exists() else None
            kernels = {one["problem"]: one for one in record["kernels"]} if record else {}
            groups = [
                {fact: group[fact] for fact in _GROUP_FACTS}
                | {"name": name, "tried": tried.get(group["problem"]), "kernel": kernels.get(group["problem"])}
                for group, name in zip(captured["groups"], name_groups(captured["groups"]), strict=True)
                if is_listed(group)
            ]
            facts = {name: captured[name] for name in _CAPTURED_FACTS}
            found.append(clean(facts | {"suite": suite, "groups": groups, "applied": record}))
    return found


def _count_tried(rows: Iterable[ResultRow]) -> dict[str, dict[str, Any]]:
    """Count candidates and correct ones of each problem, with the best speedup."""
    tried: dict[str, dict[str, Any]] = {}
    for row in rows:
        counts = tried.setdefault(row.problem, {"candidates": 0, "correct": 0, "best": None})
        counts["candidates"] += 1
        counts["correct"] += row.outcome == Outcome.CORRECT
        if row.speedup is not None:
            counts["best"] = max(row.speedup, counts["best"] or 0.0)
    return tried


def _read_references(material: Material, problems_dirs: Sequence[Path], generated_dir: Path | None) -> dict[str, str]:
    """Return sources by problem digest, if that version still exists in the suite or run."""
    of_suites = {(folder, row.suite, row.problem) for row in material.rows for folder in problems_dirs}
    of_runs = {(folder, row.run, row.problem) for row in material.rows for folder in (generated_dir,) if folder}
    digests = {one.problem_digest for one in material.evidence.values()}
    read = (_read_reference(_locate_in_suite, *names) for names in sorted(of_suites))
    kept = (_read_reference(locate_reference, *names) for names in sorted(of_runs))
    sources = [source for source in (*read, *kept) if source]
    by_digest = {sha256(source.encode("utf-8", "replace")).hexdigest()[:16]: source for source in sources}
    return {digest: clean(source) for digest, source in by_digest.items() if digest in digests}


def _locate_in_suite(suite_dir: Path, problem: str) -> Path:
    return suite_dir / f"{check_name('problem', problem)}.py"


def _read_reference(locate: Callable[[Path, str], Path], root: Path, folder: str, problem: str) -> str | None:
    """Names come from the database and are not trusted."""
    try:
        return locate(root / check_name("folder", folder), problem).read_text("utf-8")
    except (UsageError, OSError, UnicodeDecodeError):
        return None


def _describe_index(material: Material) -> dict[str, Any]:
    rows, nothing = material.rows, EvidenceRow(0, "", "", (), None)
    evidence = [material.evidence.get(row.id, nothing) for row in rows]
    limits = [one.roofline for one in evidence]
    origins = [material.origins.get(row.id, TurnOrigin()) for row in rows]
    best_turns = find_best_turns(rows)
    return {
        "count": len(rows),
        "texts": {name: encode_texts([getattr(row, name) for row in rows]) for name in _TEXTS}
        | {"problem_digest": encode_texts([one.problem_digest for one in evidence])}
        | {"message": encode_texts([row.message[:LONGEST_MESSAGE] for row in rows])},
        "numbers": {name: encode_numbers(getattr(row, name) for row in rows) for name in _NUMBERS}
        | {name: encode_numbers(getattr(one, name) if one else None for one in limits) for name in _LIMITS}
        | {name: encode_numbers(getattr(material.spent[row.id], name) for row in rows) for name in Spent.__slots__}
        | {name: encode_numbers(getattr(origin, name) for origin in origins) for name in ("parent", "partner")}
        | {"best_turn": encode_numbers(best_turns.get(row.id) for row in rows)},
    }


def _name_report(rows: Sequence[ResultRow]) -> str:
    runs = sorted({row.run for row in rows} - {""})
    return f"harness report: {', '.join(runs)}" if 0 < len(runs) <= 3 else "harness report"


def _render_page(blocks: dict[str, str], facts: dict[str, Any]) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    parts = [*PARTS, LIVE_PART] if facts["state"] else PARTS
    scripts = [*map(_read_part, SCRIPTS), "\n".join(map(_read_part, parts))]
    environment = Environment(loader=FileSystemLoader(PAGE), autoescape=True, undefined=StrictUndefined)
    facts = {name: clean(value) if isinstance(value, str) else value for name, value in facts.items()}
    return environment.get_template("page.html.jinja").render(
        style=Markup(_read_part("page.css")),
        scripts=[Markup(script) for script in scripts],
        hashes=[b64encode(sha256(script.encode()).digest()).decode() for script in scripts],
        blocks=blocks,
        **facts,
    )


def _read_part(name: str) -> str:
    text = (PAGE / name).read_text(encoding="utf-8")
    if "</script" in text.lower() or "</style" in text.lower():
        raise StoreError(f"{PAGE / name} contains a closing script or style tag: reinstall harness")
    return text


def _measure_scripts() -> int:
    names = (*SCRIPTS, *PARTS, "page.css", "page.html.jinja")
    return sum((PAGE / name).stat().st_size for name in names)


HOST = "127.0.0.1"
PAUSE_PER_RENDERING = 10  # times its duration, since it takes time from evaluations
_MESSAGE = """<!doctype html><meta charset="utf-8"><title>harness</title>
<script>setTimeout(() => location.reload(), 2000)</script><p>"""


class LivePage:
    """The page of the stored evaluations, rendered once for all browsers when they change."""

    def __init__(self, results_dir: Path, choice: ReportChoice) -> None:
        self._results_dir, self._choice = results_dir, choice
        self._lock = Lock()
        self._state, self._html, self._next_s = "", b"", 0.0

    def read(self) -> tuple[str, bytes]:
        """Return the state of the results and their page. Raises HarnessError."""
        with self._lock, ResultStore.open(self._results_dir, read_only=True) as store:
            newest = [row.id for row in store.rows(sort="-id", limit=1)]
            state = f'"{store.count()}-{newest}"'
            begin_s = time.monotonic()
            if state != self._state and begin_s >= self._next_s:
                page = make_page(store, self._choice, now=datetime.now(UTC), state=state)
                self._state, self._html = state, page.html.encode("utf-8", "replace")
                self._next_s = time.monotonic() + PAUSE_PER_RENDERING * (time.monotonic() - begin_s)
            return self._state, self._html


class _Handler(BaseHTTPRequestHandler):
    server: "LiveServer"

    def do_GET(self) -> None:
        if self.headers.get("Host", "").rsplit(":", 1)[0] not in (HOST, "localhost"):
            self.send_error(403, "another host name")  # a foreign page whose name resolves to this address
        elif self.path != "/":
            self.send_error(404)
        else:
            self._send_page()

    def _send_page(self) -> None:
        try:
            state, content = self.server.page.read()
        except HarnessError as error:
            self._send(503, "", f"{_MESSAGE}{html.escape(str(error))}. This page waits.".encode())
            return
        if state == self.headers.get("If-None-Match"):
            self._send(304, state, b"")
        else:
            self._send(200, state, content)

    def _send(self, status: int, state: str, content: bytes) -> None:
        self.send_response(status)
        headers = {"Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(content)), "ETag": state}
        for name, value in (headers | {"Cache-Control": "no-store"}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *values: object) -> None:
        """Print no line per request."""


class LiveServer(ThreadingHTTPServer):
    """Listens from its construction on. Raises UsageError for a port that cannot be used."""

    def __init__(self, page: LivePage, port: int) -> None:
        self.page = page
        with raising(UsageError, f"listen on port {port}", "; choose another one with --port, or 0 for any"):
            super().__init__((HOST, port), _Handler)

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_port}/"
