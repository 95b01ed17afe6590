// A captured model: where its time goes, what was tried, and what it brought.

function renderCaptured(suite) {
  return (DATA.overview.captured || []).filter((model) => model.suite === suite).map((model) => h("section", { class: "card", "aria-label": model.model },
    h("h2", {}, `${model.model}: from its time to its kernels`),
    h("p", { class: "note" }, `${formatTime(model.wall_us)} a call on ${model.hardware}. ${summariseApplied(model.applied)}`),
    makeTable({ columns: capturedColumns(model.applied), rows: model.groups, sort: "", caption: `Modules of ${model.model}` }),
    model.applied && renderModes(model.applied)));
}

function summariseApplied(applied) {
  if (!applied) return "No kernels were applied yet: harness apply puts the best ones into the model and measures it.";
  const kept = applied.kernels.filter((kernel) => !kernel.reason).length;
  const tokens = applied.tokens === null ? "" : ` The first ${applied.tokens} of ${applied.asked_tokens} greedy tokens are equal.`;
  const losses = applied.losses.length ? ` Losses of ${plural(applied.losses.length, "step")} are off by ${formatError(d3.max(applied.losses, ([theirs, ours]) => Math.abs(ours - theirs)))} at most.` : "";
  return `${kept} of ${plural(applied.kernels.length, "kernel")} applied.${tokens}${losses}`;
}

function formatGain(gain) { return gain ? [`${gain.gain.toFixed(3)}×`, h("span", { class: "note" }, ` [${gain.low.toFixed(3)}, ${gain.high.toFixed(3)}]`)] : "–"; }

function capturedColumns(applied) {
  const text = (label, cell, wraps) => ({ label, cell, class: wraps ? "wraps" : "" });
  const number = (label, cell, title) => ({ label, number: true, cell, title });
  const link = ({ problem, reason }) => (problem ? h("a", { href: href("evaluations", { problem }) }, problem) : h("span", { class: "note" }, reason || "–"));
  const tried = ({ tried: counts }) => (counts ? `${counts.correct} of ${counts.candidates}` : "–");
  const factor = (value) => (value === null || value === undefined ? "–" : `${value.toFixed(3)}×`);
  const result = ({ kernel, problem }) => (kernel ? kernel.reason || h("span", { class: "outcome correct" }, "applied") : problem && applied ? "no correct kernel" : "–");
  return [
    text("module", ({ name }) => name, true),
    number("calls", ({ calls }) => formatNumber(calls), "Per call of the model"),
    number("time", ({ share }) => shareBar(share), "Share of a call's time, with the modules inside"),
    number("of peak", ({ peak_fraction, bound }) => [formatShare(peak_fraction), h("div", { class: "note" }, bound)], "Share of the roofline that is reached, and what bounds the module"),
    number("at most", ({ gain_limit }) => formatSpeedup(gain_limit), "Speedup of the model if these modules ran at the roofline"),
    text("problem", link, true),
    number("correct", tried, "Correct candidates of those evaluated"),
    number("best alone", ({ tried: counts }) => formatSpeedup(counts && counts.best)),
    ...(applied ? [
      number("predicted", ({ kernel }) => factor(kernel && kernel.predicted), "Speedup of the model, from the kernel's own and its share of the time"),
      number("in the model", ({ kernel }) => formatGain(kernel && kernel.in_model), "Measured speedup of the model with this kernel alone; [95 % interval]"),
    ] : []),
    text("result", result, true),
  ];
}

function renderModes(applied) {
  const rows = Object.entries(applied.modes).map(([mode, gain]) => ({ mode, gain }));
  if (!rows.length) return null;
  const time = (name) => ({ gain }) => (typeof gain === "string" ? "–" : formatTime(gain[name]));
  const columns = [
    { label: "model with all applied kernels", cell: ({ mode }) => mode },
    { label: "before", number: true, cell: time("before_us") },
    { label: "after", number: true, cell: time("after_us") },
    { label: "speedup", number: true, cell: ({ gain }) => (typeof gain === "string" ? "–" : formatGain(gain)) },
    { label: "", class: "wraps", cell: ({ gain }) => (typeof gain === "string" ? `not measured: ${gain}` : "") },
  ];
  return [h("h3", {}, `What it brought: ${applied.predicted.toFixed(3)}× predicted from the shares`), makeTable({ columns, rows, sort: "", caption: "Speedup of the whole model" })];
}
