// One candidate: verdict, evidence, source beside the reference, prompt and answer.

async function showCandidate(main, id, stillWanted) {
  const row = findRow(id);
  if (row < 0) {
    replaceContent(main, h("h1", {}, `No evaluation ${id} in this report`), h("p", {}, h("a", { href: "#/evaluations" }, "All evaluations")));
    return;
  }
  const [record, answer] = await Promise.all([loadRecord("details", row), loadRecord("answers", row)]);
  const turns = findTurns(row), parent = turns.find((turn) => numberAt("turn", turn) === numberAt("parent", row));
  const parentRecord = parent === undefined ? null : await loadRecord("details", parent);
  if (!stillWanted()) return;
  document.title = `${id} ${textAt("problem", row)} – ${document.querySelector("header .title").textContent}`;
  const head = [renderWalk(row), renderVerdict(row, record), renderTurns(turns, row)];
  if (!record || record.damaged) {
    const why = record ? record.damaged : "Its details were omitted to limit the file size.";
    replaceContent(main, head, h("p", { class: "card" }, `${why} `, h("code", {}, `harness show ${id}`), " shows them."), renderFacts(row));
    return;
  }
  replaceContent(main, head,
    h("div", { class: "cards" }, renderFindings(record), renderFacts(row)),
    record.timing && renderTiming(record.timing), record.cases && record.cases.length > 0 && renderCases(record), record.correctness && renderCorrectness(record.correctness),
    renderSources(row, record, parentRecord, parent),
    h("div", { class: "cards" }, renderBuild(record, answer), renderWork(record), renderCircumstances(record)),
    renderAnswer(row, answer));
}

function sampleName(row) {
  const turn = numberAt("turn", row);
  return `${textAt("run", row)}/${textAt("problem", row)}/${numberAt("sample", row)}${turn ? `/turn-${turn}` : ""}`;
}

// The turns of this sample on the same device.
function findTurns(row) {
  const same = ["run", "problem", "suite", "model", "workload", "baseline", "language", "dtype"];
  const sameDevice = (other) => textAt("device", other) === textAt("device", row) || textAt("device", other) === "none" || textAt("device", row) === "none";
  const codes = same.map((name) => [DATA.index.texts[name].codes, DATA.index.texts[name].codes[row]]);
  const found = [];
  for (let other = 0; other < DATA.index.count; other++) {
    if (numberAt("sample", other) === numberAt("sample", row) && codes.every(([column, code]) => column[other] === code) && sameDevice(other)) {
      if (other === row || numberAt("turn", other) !== numberAt("turn", row)) found.push(other);
    }
  }
  return found.sort((a, b) => numberAt("turn", a) - numberAt("turn", b));
}

function neighbour(row, step) {
  const rows = lastList.rows || d3.range(DATA.index.count);
  const at = rows.indexOf(row);
  return at < 0 ? undefined : rows[at + step];
}

function renderWalk(row) {
  const link = (step, label) => {
    const to = neighbour(row, step);
    return to === undefined ? h("span", { class: "note" }, label) : h("a", { href: `#/candidate/${numberAt("id", to)}` }, label);
  };
  return h("nav", { class: "walk", "aria-label": "Candidates" }, h("a", { href: lastList.address, id: "back" }, "← list"), link(-1, "previous"), link(1, "next"));
}

function renderVerdict(row, record) {
  const speedup = numberAt("speedup", row);
  return h("div", { class: "heading" },
    h("h1", {}, `${textAt("problem", row)} `, h("span", { class: "note" }, `by ${textAt("model", row)}`)),
    h("p", { class: "verdict" }, outcomeBadge(textAt("outcome", row)), speedup !== null && h("strong", {}, ` ${formatSpeedup(speedup, textAt("clock", row))} against ${textAt("baseline", row)}`), textAt("device", row) === "emulated" && h("span", { class: "note" }, " emulated: correctness only, no time")),
    h("p", { class: "told" }, record && record.verdict ? record.verdict : textAt("message", row)));
}

// A tree: each turn is indented below the one that it goes on from.
function renderTurns(turns, row) {
  if (turns.length < 2) return null;
  const byNumber = new Map(turns.map((turn) => [numberAt("turn", turn), turn]));
  const points = traceBest(turns, byNumber);
  const lines = d3.sort(turns.map((turn, i) => ({ turn, point: points[i], path: tracePath(turn, byNumber) })), (one, other) => comparePaths(one.path, other.path));
  const heads = ["turn", "outcome", "speedup", "interval", "over", "best so far", "tokens so far"];
  const interval = (turn) => numberAt("speedup_low", turn) === null ? "" : `[${numberAt("speedup_low", turn).toFixed(2)}, ${numberAt("speedup_high", turn).toFixed(2)}]`;
  const cells = ({ turn, point, path }) => [
    h("a", { href: `#/candidate/${numberAt("id", turn)}`, "aria-current": turn === row ? "page" : null, style: { paddingLeft: `${Math.min(path.length - 1, 12)}em` } }, `${path.length > 1 ? "└ " : ""}${numberAt("turn", turn)}${numberAt("partner", turn) === null ? "" : ` and ${numberAt("partner", turn)}`}`),
    outcomeBadge(textAt("outcome", turn)), formatSpeedup(numberAt("speedup", turn), textAt("clock", turn)), interval(turn),
    numberAt("over_rival", turn) === null ? "" : `${numberAt("rival_turn", turn)}: ${formatSpeedup(numberAt("over_rival", turn))}`,
    point.best === null ? "" : formatSpeedup(point.best), point.tokens ? formatCount(point.tokens) : "",
  ];
  const table = h("table", { class: "list turns", id: "turns" }, h("thead", {}, h("tr", {}, heads.map((head, i) => h("th", { scope: "col", class: i > 1 ? "number" : "" }, head)))),
    h("tbody", {}, lines.map((line) => h("tr", {}, cells(line).map((cell, j) => h("td", { class: j > 1 ? "number" : "" }, cell))))));
  const curve = (name, label) => h("figure", { class: "curve" }, drawn((width) => plotBest(points, name, label, width), 200));
  const timed = points.filter(({ best }) => best !== null);
  const curves = timed.length > 1 && h("div", { class: "cards plain" }, curve("turn", "turn"), timed.some(({ tokens }) => tokens) && curve("tokens", "tokens"));
  return card("Turns", "A turn is indented below the one that it goes on from. Over: its speedup over the best turn before, in A/B pairs.", h("div", { class: "scroll", tabindex: "0" }, table), curves);
}

// The turns from the first ancestor to this one.
function tracePath(turn, byNumber) {
  const path = [numberAt("turn", turn)];
  for (let parent = numberAt("parent", turn); parent !== null && parent < path[0] && byNumber.has(parent); parent = numberAt("parent", byNumber.get(parent))) path.unshift(parent);
  return path;
}

function comparePaths(one, other) {
  const at = d3.range(Math.min(one.length, other.length)).find((i) => one[i] !== other[i]);
  return at === undefined ? one.length - other.length : one[at] - other[at];
}

// After each turn: the speedup of the best one so far, and all tokens.
function traceBest(turns, byNumber) {
  let tokens = 0;
  return turns.map((turn) => {
    tokens += (numberAt("prompt_tokens", turn) || 0) + (numberAt("completion_tokens", turn) || 0);
    const best = byNumber.get(numberAt("best_turn", turn));
    return { turn: numberAt("turn", turn), tokens, best: best === undefined ? null : numberAt("speedup", best), speedup: numberAt("speedup", turn) };
  });
}

function renderFacts(row) {
  const tokens = numberAt("completion_tokens", row);
  return card("Subject", null, factList([
    ["evaluation", String(numberAt("id", row))], ["sample", sampleName(row)], ["model", `${textAt("model", row)}, prompt ${textAt("prompt", row)}`],
    ["problem", `${textAt("suite", row)}/${textAt("problem", row)}, ${textAt("workload", row)} workload${textAt("dtype", row) && ` in ${textAt("dtype", row)}`}`],
    ["language", textAt("language", row)], ["device", `${textAt("device", row)} ${textAt("hardware", row)}`],
    ["candidate", textAt("candidate", row) || "no code"], ["certificate", textAt("certificate", row) || "none"],
    ["tokens", tokens === null ? "unknown" : `${formatCount(numberAt("prompt_tokens", row))} in, ${formatCount(tokens)} out${numberAt("reasoning_tokens", row) ? `, of them ${formatCount(numberAt("reasoning_tokens", row))} reasoning` : ""}`],
    ["latency", formatSeconds(numberAt("latency_s", row))],
  ]));
}

function renderFindings(record) {
  const order = ["fatal", "warning", "note"];
  const findings = record.findings.slice().sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
  const items = findings.map((finding) => h("li", { class: finding.severity },
    h("strong", {}, `${finding.severity}: ${finding.check}`), " ", finding.message,
    finding.lines.map((line) => [" ", h("a", { href: `#line-${line}`, class: "to-line", onclick: (event) => { event.preventDefault(); showLine(line); } }, `line ${line}`)]),
    finding.evidence && h("pre", {}, finding.evidence)));
  return card("Findings", null, items.length ? h("ul", { class: "findings" }, items) : h("p", {}, "none"));
}

function showLine(line) {
  const element = document.getElementById(`line-${line}`);
  if (!element) return;
  element.scrollIntoView({ block: "center" });
  element.classList.add("flash");
  setTimeout(() => element.classList.remove("flash"), 1500);
}

function renderTiming(timing) {
  const several = timing.calls.length === 0 ? "" : timing.calls.length === 1 ? plural(timing.calls[0], "call") : `${timing.calls[0]} to ${timing.calls[timing.calls.length - 1]} calls`;
  const samples = timing.samples.candidate_reported_us.length;
  return h("section", { class: "card", "aria-label": "Time" }, h("h2", {}, "Time"),
    h("p", {}, h("strong", {}, timing.summary), `: ${timing.why}. ${timing.resolution}`),
    samples > 0 && h("div", { class: "cards plain" },
      h("figure", {}, timing.has_two_clocks && h("div", { class: "legend" }, h("span", {}, swatch(PALETTE[0]), "reported by the worker"), h("span", {}, swatch(PALETTE[4]), "measured by the evaluator")), drawn((width) => plotRatios(timing, width), 230), h("figcaption", { class: "note" }, `Each of ${plural(timing.blocks, "block")} of ${several}; the band is the interval.`)),
      h("figure", {}, h("div", { class: "legend" }, h("span", {}, swatch(PALETTE[1]), timing.baseline), h("span", {}, swatch(PALETTE[0]), "candidate")), drawn((width) => plotTimes(timing, width), 230), h("figcaption", { class: "note" }, `Median: ${formatTime(timing.baseline_us)} and ${formatTime(timing.candidate_us)}.`))),
    factList(timing.conditions));
}

function renderCases({ cases, case_facts }) {
  const heads = ["case", "sizes", "outcome", "speedup", "interval", "verdict", "baseline", "candidate"];
  const numbers = new Set([3, 4, 6, 7]);
  const timeOf = (value) => value === null ? "–" : formatTime(value);
  const cells = (one) => [one.secret ? `${one.name} (secret)` : one.name, one.sizes, outcomeBadge(one.outcome), formatSpeedup(one.speedup, one.clock), one.interval, one.verdict, timeOf(one.baseline_us), timeOf(one.candidate_us)];
  return card("Cases", case_facts.join(" ") || null,
    h("div", { class: "scroll", tabindex: "0" }, h("table", { class: "list", id: "cases" }, h("thead", {}, h("tr", {}, heads.map((head, i) => h("th", { scope: "col", class: numbers.has(i) ? "number" : "" }, head)))),
      h("tbody", {}, cases.map((one) => h("tr", {}, cells(one).map((cell, j) => h("td", { class: numbers.has(j) ? "number" : "" }, cell))))))));
}

function renderCorrectness({ trials, weights, truth, passed, count }) {
  const cells = (i) => [String(i + 1), trials.case && trials.case[i] ? `${trials.case[i]}: ${trials.distribution[i]}` : trials.distribution[i], trials.passed[i] ? "yes" : h("strong", { class: "no" }, "NO"), formatError(trials.max_abs_error[i]), formatError(trials.reference_max_abs_error[i]), typeof trials.worst_ratio[i] === "number" ? formatShare(trials.worst_ratio[i]) : formatError(trials.worst_ratio[i]), formatNumber(trials.mismatched[i]), formatNumber(trials.elements[i]), trials.message[i]];
  const heads = ["#", "inputs", "passed", "max error", "reference's", "of allowed", "wrong", "elements", ""];
  const numbers = new Set([0, 3, 4, 5, 6, 7]);
  return card("Correctness", `${passed} of ${plural(count, "trial")} passed, against ${truth === "float64" ? "the float64 truth" : "the reference itself"}; weights: ${weights}.`,
    h("div", { class: "scroll", tabindex: "0" }, h("table", { class: "list" }, h("thead", {}, h("tr", {}, heads.map((head, i) => h("th", { scope: "col", class: numbers.has(i) ? "number" : "" }, head)))),
      h("tbody", {}, trials.passed.map((_, i) => h("tr", {}, cells(i).map((cell, j) => h("td", { class: numbers.has(j) ? "number" : j === 8 ? "wraps" : "" }, cell))))))));
}

function renderSources(row, record, parentRecord, parent) {
  const source = record.textOf(record.source);
  const digest = textAt("problem_digest", row), reference = DATA.references[digest];
  const marks = new Map();
  for (const finding of record.findings) for (const line of finding.lines) marks.set(line, [...(marks.get(line) || []), finding]);
  const before = parentRecord && parentRecord.textOf ? parentRecord.textOf(parentRecord.source) : null;
  const left = h("div", {}, h("h3", {}, "Candidate"), source === null ? h("p", { class: "note" }, textAt("candidate", row) ? "The source was not stored." : "The answer contains no code.") : renderSource(source, marks));
  const right = h("div", {}, h("h3", {}, "Reference"), reference === undefined
    ? h("p", { class: "note" }, `The evaluated version of the problem (${digest || "unknown"}) was not found when the report was created.`)
    : renderSource(reference, new Map(), "reference"));
  const difference = before && source !== null && h("details", { open: true, id: "difference" }, h("summary", {}, `Changes since turn ${numberAt("turn", parent)}`), renderDiff(before, source));
  return h("section", { class: "card", "aria-label": "Source" }, h("h2", {}, "Source"), difference, h("div", { class: reference === undefined ? "" : "sources" }, left, right));
}

function renderBuild(record, answer) {
  const log = answer && answer.textOf(answer.log);
  if (!record.build && !log) return null;
  const { build } = record;
  const how = build && `${plural(build.keys.length, "extension")}, ${build.cached ? "from the cache" : `built in ${formatSeconds(build.duration_s)}`}, strategy ${build.strategy}${build.reason ? `: ${build.reason}` : ""}`;
  const failed = record.findings.some((finding) => finding.check === "build" && finding.severity === "fatal");
  return card("Build", how, failed && build && build.errors && h("pre", {}, build.errors), log && h("details", {}, h("summary", {}, "Log"), h("pre", { class: "long" }, log)));
}

function renderWork(record) {
  const parts = [];
  if (record.work) {
    const shares = [["candidate's kernels", record.work.custom], ["torch operators", record.work.torch], ["vendor libraries", record.work.library], ["other", record.work.other]];
    parts.push(h("table", { class: "list" }, h("tbody", {}, shares.map(([name, share]) => h("tr", {}, h("td", {}, name), h("td", { class: "number" }, shareBar(share)))))));
    parts.push(factList([["kernels", record.work.kernels.join(", ") || "none"], ["without them", record.work.without]]), h("p", { class: "note" }, "As reported by the worker; not part of the verdict."));
  }
  if (record.counters) {
    parts.push(h("h3", {}, "Hardware counters, read by ncu"));
    for (const [launch, facts] of record.counters.kernels) parts.push(h("details", {}, h("summary", {}, launch), factList(facts)));
    if (record.counters.note) parts.push(h("p", { class: "note" }, record.counters.note));
  }
  if (record.limits) parts.push(h("h3", {}, "Roofline"), factList(record.limits));
  return parts.length ? card("Time attribution", null, parts) : null;
}

function renderCircumstances(record) {
  const phases = record.phases.map(([name, seconds]) => `${name} ${formatSeconds(seconds)}`).join(", ");
  return card("Evaluation conditions", null, factList([...record.circumstances, ["phases", phases || "not recorded"]]));
}

function renderAnswer(row, answer) {
  if (!answer) return card("Prompt and answer", "Omitted to limit the file size.");
  const part = (label, text, open) => text !== null && h("details", { open }, h("summary", {}, label, h("span", { class: "note" }, ` ${formatCount(text.length)} characters`)), h("pre", { class: "long" }, text));
  const parts = [part(numberAt("turn", row) ? "Fed back" : "Prompt", answer.textOf(answer.prompt), numberAt("turn", row) > 0), part("Reasoning", answer.textOf(answer.reasoning), false), part("Answer", answer.textOf(answer.answer), false)].filter(Boolean);
  const note = parts.length ? answer.finish && `Finished: ${answer.finish}.` : "The files of this run were not found when the report was created.";
  return card("Prompt and answer", note, parts);
}
