// The list of evaluations with filters, sorting and pages. Its state is in the URL.

let lastList = { address: "#/evaluations", rows: null };
const CHOICES = ["model", "problem", "outcome", "device"];
const THIN = "(max-width: 700px)";

function showEvaluations(main, parameters) {
  const state = Object.fromEntries(parameters);
  const go = (change) => { location.replace(href("evaluations", { ...state, page: "", ...change })); };
  const rows = selectRows(state);
  lastList = { address: location.hash, rows };
  const search = h("input", {
    type: "search", class: "filter wide", value: state.q || "", "aria-label": "Filter evaluations",
    placeholder: "Filter ( / ): text, outcome:correct, model:\"name\", speedup>1.2",
    oninput: debounce((event) => go({ q: event.target.value }), 180),
  });
  const table = makeTable({
    columns: evaluationColumns(), rows, sort: state.sort, caption: "Evaluations", page: Number(state.page) || 0,
    onSort: (sort) => go({ sort }), onPage: (page) => { go({ page: String(page) }); scrollTo(0, 0); },
    open: (row) => { location.hash = `#/candidate/${numberAt("id", row)}`; },
  });
  const section = state.section && DATA.overview.sections[Number(state.section)];
  const results = [
    h("p", { class: "note", role: "status" }, rows.length === DATA.index.count ? plural(rows.length, "evaluation") : `${formatNumber(rows.length)} of ${plural(DATA.index.count, "evaluation")}`,
      section && [`, ${nameSection(section)} `, h("button", { type: "button", class: "quiet", onclick: () => go({ section: "" }) }, "show all")]),
    rows.length ? table : h("p", {}, "No evaluation matches. ", h("a", { href: "#/evaluations" }, "Show all")),
  ];
  // Keep the focused search field.
  const standing = main.querySelector(".results");
  if (standing && document.activeElement.matches("input.wide")) { replaceContent(standing, results); return; }
  replaceContent(main, h("div", { class: "filters" }, search, CHOICES.map((name) => choose(name, state, go))), h("div", { class: "results" }, results));
}

function choose(name, state, go) {
  const { texts, codes } = DATA.index.texts[name];
  const counts = new Uint32Array(texts.length);
  for (const code of codes) if (code >= 0) counts[code]++;
  const order = texts.map((text, code) => [text, counts[code]]).sort((a, b) => (a[0] < b[0] ? -1 : 1)).slice(0, 1000);
  return h("label", {}, `${name} `, h("select", { "data-filter": name, onchange: (event) => go({ [name]: event.target.value }) },
    h("option", { value: "" }, "all"),
    order.map(([text, count]) => h("option", { value: text, selected: state[name] === text }, `${cutMiddle(text, 40)} (${formatNumber(count)})`))));
}

function selectRows(state) {
  const tests = CHOICES.concat("run").filter((name) => state[name]).map((name) => matchColumns([name], state[name], true));
  if (state.q) tests.push(compileQuery(state.q));
  if (state.section !== undefined && state.section !== "") tests.push(inSection(Number(state.section)));
  const rows = [];
  for (let row = 0; row < DATA.index.count; row++) if (tests.every((test) => test(row))) rows.push(row);
  return orderRows(rows, state.sort);
}

function inSection(section) {
  const members = new Set(DATA.overview.groups.filter((group) => group.section === section).flatMap((group) => group.members));
  return (row) => members.has(row);
}

function evaluationColumns() {
  const number = (name, label, format) => ({ name, label, number: true, cell: (row) => format(numberAt(name, row)) });
  const text = (name, label, kind) => ({ name, label, class: kind, cell: (row) => textAt(name, row) });
  const identity = { name: "id", label: "id", number: true, cell: (row) => h("a", { href: `#/candidate/${numberAt("id", row)}` }, String(numberAt("id", row))) };
  const outcome = { name: "outcome", label: "outcome", cell: (row) => outcomeBadge(textAt("outcome", row)) };
  const ratio = (name, label) => ({ ...number(name, label), cell: (row) => formatSpeedup(numberAt(name, row), textAt("clock", row)) });
  const speedup = ratio("speedup", "speedup");
  if (matchMedia(THIN).matches) {
    const subject = { ...text("problem", "problem", "wraps"), cell: (row) => [textAt("problem", row), h("div", { class: "note" }, textAt("model", row))] };
    return [identity, subject, outcome, speedup];
  }
  const hasCases = d3.range(DATA.index.count).some((row) => numberAt("worst_speedup", row) !== null);
  const ofCases = hasCases ? [ratio("worst_speedup", "worst case"), number("generalisation_gap", "gap", (gap) => (gap === null ? "–" : gap.toFixed(2)))] : [];
  const hasGaps = d3.range(DATA.index.count).some((row) => numberAt("gap_closed", row) !== null);
  const ofRoofline = hasGaps ? [number("gap_closed", "gap closed", formatShare)] : [];
  const hasCalls = d3.range(DATA.index.count).some((row) => numberAt("call_speedup", row) !== null);
  const ofCalls = hasCalls ? [number("call_speedup", "whole calls", (value) => formatSpeedup(value, ""))] : [];
  return [
    identity, text("problem", "problem", "wraps"), text("model", "model", "wraps"), outcome, speedup, ...ofCalls, ...ofRoofline, ...ofCases,
    { name: "verdict", label: "time", cell: (row) => textAt("verdict", row) || "–" },
    { name: "device", label: "device", cell: (row) => textAt("device", row) },
    { name: "workload", label: "workload", cell: (row) => [textAt("workload", row), textAt("dtype", row)].filter(Boolean).join(", ") }, text("run", "run", "wraps"),
    { name: "sample", label: "sample", number: true, cell: (row) => `${numberAt("sample", row)}${numberAt("turn", row) ? `.${numberAt("turn", row)}` : ""}` },
    number("own_share", "own", formatShare),
    { name: "certificate", label: "certificate", cell: (row) => (textAt("certificate", row) ? h("span", { class: "certificate yes", title: textAt("certificate", row) }, "yes") : h("span", { class: "note" }, "no")) },
    { name: "message", label: "message", class: "message", cell: (row) => h("span", { title: textAt("message", row) }, firstLine(textAt("message", row))) },
  ];
}
