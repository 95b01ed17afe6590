// The overview: the leaderboard of one section (comparable groups) and its charts.

const MOST_DRAWN = 8;
const view = { leaders: "", leaderSort: "" };

function showOverview(main, parameters) {
  const { groups, sections } = DATA.overview;
  if (!groups.length) {
    const list = h("div");
    main.classList.add("wide");
    replaceContent(main, renderCaptured(), h("h1", {}, "Programs given as files"), list);
    showEvaluations(list, parameters);
    return;
  }
  const section = Math.min(sections.length - 1, Number(parameters.get("section") ?? pickSection()) || 0);
  const members = groups.filter((group) => group.section === section).map((group) => ({ ...group }));
  labelGroups(members);
  replaceContent(main,
    renderHeading(section), renderSections(section), renderCaptured(sections[section].suite), renderTiles(members),
    renderLeaderboard(members, section), renderCharts(members, sections[section]),
    renderHeatMap(members, section), renderEnvironments());
}

// The full workload on a real device, the largest such section.
function pickSection() {
  const { groups, sections } = DATA.overview;
  const size = (i) => d3.sum(groups.filter((group) => group.section === i), (group) => group.samples);
  const real = (i) => !["none", "emulated"].includes(sections[i].device);
  const order = d3.range(sections.length).sort((a, b) => real(b) - real(a) || (sections[b].workload === "full") - (sections[a].workload === "full") || size(b) - size(a));
  return order[0];
}

// Labels are model names, with the prompt where names are ambiguous.
function nameTurns({ turns }) { return turns > 1 ? `, ${turns} turns` : ""; }

function labelGroups(groups) {
  const counts = d3.rollup(groups, (some) => some.length, (group) => group.model);
  groups.forEach((group, place) => {
    group.place = place;
    group.label = counts.get(group.model) > 1 ? `${group.model}, ${group.prompt}${nameTurns(group)}` : group.model;
  });
}

function nameSection({ suite, workload, language, device, baseline, chip, dtype }) {
  const where = device === "none" ? "not evaluated on a device" : device === "emulated" ? "emulated, correctness only" : `on ${device} against ${baseline}`;
  return `${suite}, ${workload} workload${dtype && ` in ${dtype}`}: ${language} ${where}${chip ? ` (${chip})` : ""}`;
}

function renderHeading() {
  const main = document.getElementById("main"), made = main.dataset.made.replace("T", " ").replace("+00:00", " UTC");
  const counts = [plural(DATA.index.count, "evaluation"), plural(new Set(DATA.overview.groups.map(({ model }) => model)).size, "model"), plural(DATA.index.texts.problem.texts.length, "problem")];
  return h("div", { class: "heading" }, h("h1", {}, document.title), h("p", { class: "note" }, `${counts.join(" · ")} · made ${made} by harness ${main.dataset.version}`));
}

function renderSections(current) {
  const { sections } = DATA.overview;
  if (sections.length === 1) return h("p", { class: "section-name" }, nameSection(sections[0]));
  return h("p", { class: "section-name" }, h("label", {}, "Comparing ", h("select", {
    id: "section", onchange: (event) => { location.hash = href("", { section: event.target.value }); },
  }, sections.map((section, i) => h("option", { value: String(i), selected: i === current }, nameSection(section))))));
}

function renderTiles(groups) {
  const samples = d3.sum(groups, (group) => group.samples), best = (value) => d3.greatest(groups, (group) => value(group) ?? -1);
  const correct = d3.sum(groups, (group) => group.outcomes.correct || 0), suspect = d3.sum(groups, (group) => group.outcomes.suspect || 0);
  const timed = groups.some((group) => group.timed);
  const correctMost = best((group) => group.fast["0"]), fastMost = best((group) => group.fast["1"]), fastest = best((group) => group.geometric_mean_speedup);
  const tile = (value, label, detail) => h("div", { class: "tile" }, h("div", { class: "value" }, value), h("div", {}, label), h("div", { class: "note" }, detail));
  return h("div", { class: "tiles" },
    tile(formatShare(correctMost.fast["0"]), "correct, best model", correctMost.label),
    timed && tile(formatShare(fastMost.fast["1"]), "fast_1, best model", fastMost.label),
    timed && tile(formatSpeedup(fastest.geometric_mean_speedup, fastest.clock), "mean speedup, best model", `${plural(fastest.timed, "kernel")} of ${fastest.label}`),
    tile(`${formatNumber(correct)} of ${formatNumber(samples)}`, "samples correct", suspect ? `${plural(suspect, "sample")} suspect` : "none suspect"));
}

// A share as a bar with its interval.
function shareBar(share, low, high) {
  if (share === null || share === undefined) return "–";
  const bar = h("span", { class: "bar-holder", "aria-hidden": "true" }, h("span", { class: "bar-fill", style: { width: `${100 * share}%` } }),
    low !== null && low !== undefined && h("span", { class: "bar-range", style: { left: `${100 * low}%`, width: `${100 * (high - low)}%` } }));
  const title = low !== null && low !== undefined ? `95 % interval over problems: ${formatShare(low)} to ${formatShare(high)}` : "";
  return h("span", { class: "share", title }, bar, h("span", {}, formatShare(share)));
}

function leaderColumns(section, timed) {
  const cost = (group) => (group.cost.counted && group.cost.correct ? (group.cost.prompt_tokens + group.cost.completion_tokens) / group.cost.correct : null);
  const number = (name, label, key, cell, title) => ({ name, label, number: true, key, cell, title });
  return [
    number("place", "#", (g) => g.place, (g) => String(g.place + 1), "Rank: by fast_1, then correctness, then mean speedup"),
    { name: "model", label: "model", key: (g) => g.model, class: "wraps", cell: (g) => [swatch(colourOfGroup(g.place)), h("a", { href: href("evaluations", { model: g.model, section }) }, g.model), h("span", { class: "note" }, ` ${g.prompt}${nameTurns(g)}`)] },
    number("correct", "correct", (g) => g.fast["0"], (g) => shareBar(g.fast["0"], g.correct_low, g.correct_high), "Share of all problems, expected for one sample"),
    ...(timed ? [
      number("fast_1", "fast_1", (g) => g.fast["1"], (g) => shareBar(g.fast["1"]), "Share of all problems that are correct and faster than the baseline"),
      number("fast_2", "fast_2", (g) => g.fast["2"], (g) => formatShare(g.fast["2"])),
      number("speedup", "speedup", (g) => g.geometric_mean_speedup, (g) => [formatSpeedup(g.geometric_mean_speedup, g.clock), g.speedup_low !== null && h("span", { class: "note" }, ` [${g.speedup_low.toFixed(2)}, ${g.speedup_high.toFixed(2)}] of ${g.timed}`)], "Geometric mean over the correct candidates with a ranked time; [interval by measurement error] of their number"),
      number("own", "own", (g) => g.own_share, (g) => formatShare(g.own_share), "Median share of a correct candidate's time in its own compiled code"),
    ] : []),
    number("tokens", "tokens / correct", cost, (g) => formatCount(cost(g)), "Prompt and answer tokens of all samples per correct kernel"),
    number("problems", "problems", (g) => g.problems, (g) => (g.scored === g.problems ? String(g.problems) : `${g.scored} of ${g.problems}`)),
    number("samples", "samples", (g) => g.samples, (g) => formatNumber(g.samples)),
    { name: "certificate", label: "cert.", title: "Evaluated under a valid red-team certificate", key: (g) => g.certificate || "", cell: (g) => (g.certificate ? h("span", { class: `certificate ${g.certificate}`, title: `${g.certified} of ${g.on_device} samples on a device` }, g.certificate) : "–") },
  ];
}

function renderLeaderboard(groups, section) {
  const holder = h("div", {}), columns = leaderColumns(section, groups.some((group) => group.timed));
  const draw = () => {
    const wanted = view.leaders.toLowerCase();
    const matching = groups.filter((group) => `${group.model} ${group.prompt}`.toLowerCase().includes(wanted));
    const rows = view.leaderSort ? sortByKey(matching, columns, view.leaderSort) : matching;
    holder.replaceChildren(makeTable({ columns, rows, sort: view.leaderSort, caption: "Leaderboard", onSort: (sort) => { view.leaderSort = sort; draw(); } }));
    if (!rows.length) holder.append(h("p", { class: "note" }, "No model matches."));
  };
  const filter = h("input", { type: "search", class: "filter", placeholder: "Filter models ( / )", "aria-label": "Filter models", value: view.leaders, oninput: (event) => { view.leaders = event.target.value; draw(); } });
  draw();
  const chips = [...new Set(groups.flatMap((group) => group.hardware))];
  return h("section", { class: "card", id: "leaderboard" }, h("div", { class: "card-head" }, h("h2", {}, "Leaderboard"), filter), holder, chips.length > 0 && h("p", { class: "note" }, `Evaluated on ${chips.join("; ")}.`), DATA.overview.sections[section].note && h("p", { class: "note" }, `Note: ${DATA.overview.sections[section].note}.`));
}

function renderCharts(groups, section) {
  const drawnGroups = groups.slice(0, MOST_DRAWN), rest = groups.length - drawnGroups.length;
  const some = rest ? ` The first ${MOST_DRAWN} of ${groups.length} are drawn.` : "";
  const timed = drawnGroups.filter((group) => group.timed);
  const legend = () => h("div", { class: "legend" }, drawnGroups.map((group) => h("span", {}, swatch(colourOfGroup(group.place)), group.label)));
  const cards = [], missing = [];
  if (timed.length) {
    const band = drawnGroups.length <= 4 ? " Bands: 95 % over problems." : " Point at a line for its interval.";
    cards.push(card("fast_p", `Share of problems with a correct candidate more than p times as fast.${band}${some}`, legend(), drawn((width) => plotCurves(drawnGroups.filter((group) => group.fast["1"] !== null), DATA.overview.thresholds, width), 300)));
    cards.push(card("Speedups", `Correct candidates by speedup; values beyond the axis are counted in the last bar.${some}`, drawn((width) => plotSpeedups(timed, width), 200)));
  } else {
    const why = section.device === "emulated" ? "Emulated device: correctness only, no times." : "No correct candidate has a ranked time.";
    missing.push(why);
  }
  const stages = DATA.overview.stages;
  const present = stages.filter((stage) => drawnGroups.some((group) => stage.outcomes.some((outcome) => group.outcomes[outcome])));
  const key = h("div", { class: "legend" }, present.map((stage) => h("span", {}, swatch(STAGE_COLOURS[stage.name]), stage.name)));
  cards.push(card("Outcomes", `By deciding stage.${some}`, key, drawn((width) => plotOutcomes(drawnGroups, stages, width))));
  const bounded = listBounded(drawnGroups);
  if (bounded.length) cards.push(renderRoofline(bounded));
  else if (timed.length) missing.push("No roofline: requires a correct candidate with counted operations on a measured device (harness doctor --measure).");
  if (drawnGroups.some((group) => Object.keys(group.phases).length)) cards.push(renderPhases(drawnGroups));
  cards.push(renderCosts(groups));
  return [missing.map((why) => h("p", { class: "note" }, why)), h("div", { class: "cards even" }, cards)];
}

function renderRoofline(bounded) {
  return card("Roofline", "Operations of the reference per byte of inputs, weights and outputs, below the largest measured peak. A better algorithm may exceed it.", drawn((width) => plotRoofline(bounded, width), 330));
}

function renderCosts(groups) {
  const per = (group, value) => (group.cost.counted && group.cost.correct ? value / group.cost.correct : null);
  const priced = groups.some((group) => group.cost.usd !== null);
  const column = (name, label, key, format, title) => ({ name, label, number: true, key, title, cell: (group) => format(key(group)) });
  const columns = [
    { name: "model", label: "model", class: "wraps", key: (g) => g.label, cell: (g) => [swatch(colourOfGroup(g.place)), g.label] },
    column("answers", "answers", (g) => g.cost.answers, formatNumber, "All turns of all samples"),
    column("prompt", "tokens in", (g) => (g.cost.counted ? g.cost.prompt_tokens : null), formatCount),
    column("completion", "out", (g) => (g.cost.counted ? g.cost.completion_tokens : null), formatCount, "Answer tokens, reasoning included"),
    column("reasoning", "reasoning", (g) => (g.cost.counted ? g.cost.reasoning_tokens : null), formatCount),
    column("each", "per correct", (g) => per(g, g.cost.prompt_tokens + g.cost.completion_tokens), formatCount, "Tokens per correct kernel"),
    ...(priced ? [column("usd", "US$", (g) => g.cost.usd, (v) => (v === null ? "–" : v.toFixed(2))), column("usd_each", "US$ / correct", (g) => (g.cost.usd === null ? null : per(g, g.cost.usd)), (v) => (v === null ? "–" : v.toFixed(3)))] : []),
    column("latency", "latency", (g) => g.cost.latency_s || null, formatSeconds),
  ];
  const note = groups.some((group) => group.cost.counted) ? (priced ? "" : "Set prices with --price.") : "No token counts in the answers of these runs.";
  const cost = card("Cost", note, makeTable({ columns, rows: groups, sort: "", caption: "Cost" }));
  cost.classList.add("tight");
  if (priced) cost.classList.add("across");
  return cost;
}

function renderPhases(groups) {
  const names = [...new Set(groups.flatMap((group) => Object.keys(group.phases)))];
  const key = h("div", { class: "legend" }, names.map((name, i) => h("span", {}, swatch(PALETTE[i % PALETTE.length]), name)));
  return card("Evaluation time", "Seconds per sample, on average.", key, drawn((width) => plotPhases(groups, width)));
}

// Problem by model: the best speedup, correct without a ranked time, or unsolved.
function renderHeatMap(groups, section) {
  const models = groups.slice(0, 30), problems = new Map();
  models.forEach((group, column) => {
    for (const row of group.members) cellOf(problems, textAt("problem", row), column).push(row);
    for (const problem of group.asked) cellOf(problems, problem, column);
  });
  const names = [...problems.keys()].sort(), most = 500;
  const head = h("tr", {}, h("th", { scope: "col" }, "problem"), models.map((group) => h("th", { scope: "col", title: group.label }, h("span", { class: "tilted" }, cutMiddle(group.label, 22)))));
  const body = names.slice(0, most).map((problem) => h("tr", {}, h("th", { scope: "row" }, h("a", { href: href("evaluations", { problem, section }) }, problem)),
    models.map((group, column) => heatCell(problems.get(problem).get(column), problem, group, section))));
  const note = "The best sample of each: blue is faster than the baseline, orange slower; ✓ correct without a ranked time, × not solved, ? not evaluated."
    + (groups.length > models.length ? ` ${models.length} of ${groups.length} models.` : "") + (names.length > most ? ` ${most} of ${names.length} problems.` : "");
  const ramp = groups.some((group) => group.timed) && h("div", { class: "ramp", "aria-hidden": "true" }, "¼×", h("span", { style: { background: `linear-gradient(to right, ${[0.25, 0.5, 1, 2, 4].map((speedup) => heatColours(speedup).style.background).join(", ")})` } }), "4×");
  return card("Problems by model", note, ramp, h("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": "Problems by model" }, h("table", { class: "heat" }, h("thead", {}, head), h("tbody", {}, body))));
}

function cellOf(problems, problem, column) {
  if (!problems.has(problem)) problems.set(problem, new Map());
  const cells = problems.get(problem);
  if (!cells.has(column)) cells.set(column, []);
  return cells.get(column);
}

function heatCell(rows, problem, group, section) {
  if (!rows) return h("td", { class: "none" });
  const fastest = d3.greatest(rows.filter((row) => numberAt("speedup", row) !== null), (row) => numberAt("speedup", row));
  const outcomes = rows.map((row) => textAt("outcome", row));
  const correct = outcomes.filter((outcome) => outcome === "correct").length;
  const best = fastest === undefined ? null : numberAt("speedup", fastest);
  const unevaluated = outcomes.length > 0 && outcomes.every((outcome) => ["not_run", "problem_error", "harness_error"].includes(outcome));
  const text = best !== null ? (best < 9.95 ? best.toFixed(1) : best.toFixed(0)) : correct ? "✓" : unevaluated ? "?" : "×";
  const description = rows.length ? `${correct} of ${rows.length} correct${best !== null ? `, best ${formatSpeedup(best, textAt("clock", fastest))}` : ""}` : "no sample";
  const look = best !== null ? heatColours(best) : { class: correct ? "solved" : unevaluated ? "none" : "failed" };
  const link = rows.length === 1 ? `#/candidate/${numberAt("id", rows[0])}` : href("evaluations", { problem, model: group.model, section });
  return h("td", look, rows.length ? h("a", { href: link, title: `${problem}, ${group.label}: ${description}` }, text) : h("span", { title: description }, text));
}

function heatColours(speedup) {
  const strength = Math.min(1, Math.abs(Math.log2(speedup)) / 2);
  const end = speedup >= 1 ? "#0072b2" : "#d55e00", middle = isDark() ? "#2a2d33" : "#f1f1ee";
  const background = d3.interpolateRgb(middle, end)(0.08 + 0.92 * strength);
  return { style: { background, color: d3.lab(background).l > 55 ? "#111" : "#fff" } };
}

function renderEnvironments() {
  const { environments } = DATA.overview, most = 50;
  const parts = environments.slice(0, most).map(({ entries, count }) => {
    const known = Object.fromEntries(entries);
    const title = [known.gpu, known.cpu, known.torch && `torch ${known.torch}`, known.harness && `harness ${known.harness}`, known.certificate === "none" ? "no certificate" : `certificate ${known.certificate}`].filter(Boolean).join(" · ");
    return h("details", {}, h("summary", {}, title, h("span", { class: "note" }, `  ${plural(count, "evaluation")}`)), factList(entries));
  });
  return card("Environments and certificates", "Software, hardware and red-team certificates of the evaluations. Each candidate's page names its environment.", parts, environments.length > most && h("p", { class: "note" }, `${environments.length - most} more.`));
}

function factList(entries) { return h("dl", { class: "facts" }, entries.map(([name, value]) => [h("dt", {}, name), h("dd", {}, String(value))])); }
