// Plots, drawn by Observable Plot from plain values. Each takes a width and returns an element.

const LABELS = { labelAnchor: "center", labelArrow: "none", labelOffset: 38 };
const FONT = { background: "transparent", color: "currentColor", fontSize: "12px", fontFamily: "inherit", overflow: "visible" };

// Redraws when the width or the colours change.
function drawn(draw, height = 0) {
  const holder = h("div", { class: "plot", style: { minHeight: `${height}px` } });
  let width = 0;
  const redraw = () => { if (width) holder.replaceChildren(draw(width)); };
  new ResizeObserver(([entry]) => {
    const now = Math.floor(entry.contentRect.width);
    if (Math.abs(now - width) > 1) { width = now; redraw(); }
  }).observe(holder);
  holder.addEventListener("recolour", redraw);
  return holder;
}

function describe(plot, text) {
  const svg = plot.tagName === "svg" ? plot : plot.querySelector("svg:last-of-type");
  (svg || plot).setAttribute("aria-label", text);
  return plot;
}

function formatMultiple(value) { return `${Number(value.toPrecision(2))}×`; }

// Powers of two that cover the values.
function multiplesBetween(low, high) {
  const ticks = [];
  for (let power = Math.ceil(Math.log2(low)); power <= Math.floor(Math.log2(high)); power++) ticks.push(2 ** power);
  return ticks;
}

function plotCurves(groups, thresholds, width) {
  const values = groups.flatMap((group, place) => thresholds.map((p, i) => ({
    name: group.label, colour: colourOfGroup(place), p, share: group.curve.share[i], low: group.curve.low[i], high: group.curve.high[i],
  })));
  const farthest = Math.max(2, ...values.filter(({ share }) => share > 0).map(({ p }) => p));
  const nearest = 0.25;
  const shown = values.filter(({ p }) => p >= nearest && p <= farthest * 1.2);
  const bands = groups.length <= 4 ? shown : [];
  return describe(Plot.plot({
    width, height: 310, style: FONT, marginTop: 28, marginLeft: 44, marginRight: 20, marginBottom: 42,
    x: { ...LABELS, type: "log", base: 2, label: "p: faster than p times the baseline", ticks: multiplesBetween(nearest, farthest * 1.2), tickFormat: formatMultiple },
    y: { label: "fast_p", domain: [0, 1], percent: false, tickFormat: "%", grid: true },
    marks: [
      Plot.ruleX([1], { stroke: "currentColor", strokeOpacity: 0.5, strokeDasharray: "3,3" }),
      Plot.areaY(bands, { x: "p", y1: "low", y2: "high", z: "name", fill: "colour", fillOpacity: 0.13, curve: "step-after" }),
      Plot.line(shown, { x: "p", y: "share", z: "name", stroke: "colour", strokeWidth: 2, curve: "step-after" }),
      Plot.tip(shown, Plot.pointer({ x: "p", y: "share", maxRadius: 30, title: (d) => `${d.name}\nfast_${Number(d.p.toPrecision(3))}: ${formatShare(d.share)}\n95 %: ${formatShare(d.low)} to ${formatShare(d.high)}` })),
    ],
  }), "fast_p of each model over p");
}

function plotSpeedups(groups, width) {
  const values = groups.flatMap((group, place) => group.members
    .filter((row) => numberAt("speedup", row) !== null)
    .map((row) => ({ name: group.label, colour: colourOfGroup(place), speedup: numberAt("speedup", row), row })));
  const [low, high] = d3.extent(values, (d) => d.speedup);
  const first = Math.floor(Math.log2(Math.max(low, 2 ** -5)) * 4) / 4, last = Math.ceil(Math.log2(Math.min(high, 2 ** 7)) * 4 + 0.01) / 4;
  const edges = d3.range(Math.min(first, -1), Math.max(last, 1) + 0.01, 0.25).map((power) => 2 ** power);
  const clamp = (speedup) => Math.min(Math.max(speedup, edges[0]), edges[edges.length - 1] * 0.999);
  const medians = d3.rollups(values, (some) => d3.median(some, (d) => d.speedup), (d) => d.name).map(([name, speedup]) => ({ name, speedup }));
  return describe(Plot.plot({
    width, height: Math.max(170, groups.length * 58 + 62), style: FONT, marginLeft: 20, marginRight: 20, marginBottom: 42, marginTop: 22,
    x: { ...LABELS, type: "log", base: 2, domain: [edges[0], edges[edges.length - 1]], label: "speedup", ticks: multiplesBetween(edges[0], edges[edges.length - 1]), tickFormat: formatMultiple },
    y: { axis: null }, fy: { domain: groups.map(({ label }) => label), axis: null, padding: 0.28 },
    marks: [
      Plot.ruleX([1], { stroke: "currentColor", strokeOpacity: 0.5, strokeDasharray: "3,3" }),
      Plot.rectY(values, Plot.binX({ y: "count", fill: "first" }, { x: (d) => clamp(d.speedup), fy: "name", fill: "colour", thresholds: edges, insetLeft: 1, tip: { format: { fill: false, fy: true } } })),
      Plot.ruleY([0], { strokeOpacity: 0.25 }),
      Plot.tickX(medians, { x: (d) => clamp(d.speedup), fy: "name", strokeWidth: 2 }),
      Plot.text(groups, { fy: "label", text: (d) => { const median = medians.find(({ name }) => name === d.label); return `${cutMiddle(d.label, 34)}  ${median ? `median ${formatSpeedup(median.speedup)}` : "no time"}`; }, frameAnchor: "top-left", dy: -13, fontWeight: 600 }),
    ],
  }), "Distribution of speedups by model");
}

// The best speedup over turns or tokens, and each turn's own.
function plotBest(points, name, label, width) {
  const best = points.filter((d) => d.best !== null), own = points.filter((d) => d.speedup !== null);
  return describe(Plot.plot({
    width, height: 200, style: FONT, marginLeft: 48, marginRight: 20, marginBottom: 42, marginTop: 22,
    x: { ...LABELS, label, domain: [0, d3.max(points, (d) => d[name])], ...(name === "turn" ? { ticks: Math.min(points.length, 10), tickFormat: "d" } : { ticks: 4, tickFormat: "~s" }) },
    y: { label: "speedup", tickFormat: formatMultiple, grid: true, zero: true, ticks: 4 },
    marks: [
      Plot.line(best, { x: name, y: "best", stroke: PALETTE[0], strokeWidth: 2, curve: "step-after" }),
      Plot.dot(own, { x: name, y: "speedup", stroke: PALETTE[4], r: 4, tip: true }),
    ],
  }), `Best speedup over ${label}`);
}

function cutMiddle(text, most) {
  return text.length <= most ? text : `${text.slice(0, Math.ceil(most / 2) - 1)}…${text.slice(1 - Math.floor(most / 2))}`;
}

function plotOutcomes(groups, stages, width) {
  const values = groups.flatMap((group) => stages.map((stage) => ({
    name: group.label, stage: stage.name, samples: group.samples, fill: STAGE_COLOURS[stage.name],
    count: d3.sum(stage.outcomes, (outcome) => group.outcomes[outcome] || 0),
    kinds: stage.outcomes.filter((outcome) => group.outcomes[outcome]).map((outcome) => `${outcome} ${group.outcomes[outcome]}`).join("\n"),
  }))).filter(({ count }) => count);
  return describe(Plot.plot({
    width, height: groups.length * 34 + 62, style: FONT, marginLeft: Math.min(150, width / 3), marginRight: 20, marginBottom: 42,
    x: { ...LABELS, label: "share of samples", tickFormat: "%", domain: [0, 1] }, y: { domain: groups.map(({ label }) => label), label: null, tickFormat: (label) => cutMiddle(label, 20), tickSize: 0 },
    marks: [
      Plot.barX(values, { x: (d) => d.count / d.samples, y: "name", fill: "fill", order: stages.map(({ name }) => name), z: "stage", stroke: "var(--surface)", strokeWidth: 1, tip: true, channels: { how: "kinds" }, title: (d) => `${d.name}\n${d.stage}: ${d.count} of ${d.samples}\n${d.kinds}` }),
      Plot.text(values, Plot.stackX({ x: (d) => d.count / d.samples, y: "name", z: "stage", order: stages.map(({ name }) => name), text: (d) => (d.count / d.samples * width * 0.7 > 9 * String(d.count).length ? String(d.count) : ""), fill: (d) => (["build", "suspect", "no code", "not evaluated", "wrong"].includes(d.stage) ? "#111" : "#fff"), pointerEvents: "none" })),
    ],
  }), "Outcomes of samples by model");
}

function listBounded(groups) {
  return groups.flatMap((group, place) => group.members.map((row) => ({ row, name: group.label, colour: colourOfGroup(place) })))
    .filter(({ row }) => textAt("outcome", row) === "correct" && numberAt("flops", row) && numberAt("moved_bytes", row) && numberAt("candidate_us", row));
}

function plotRoofline(all, width) {
  const most = 2500;
  const values = all.filter((_, i) => i % Math.ceil(all.length / most) === 0).map((d) => ({
    ...d, intensity: numberAt("flops", d.row) / numberAt("moved_bytes", d.row), rate: numberAt("flops", d.row) / numberAt("candidate_us", d.row) / 1e6,
    bandwidth: numberAt("bandwidth_gb_s", d.row) / 1e3, peak: numberAt("tflops", d.row),
  }));
  const bandwidth = d3.max(values, (d) => d.bandwidth), peak = d3.max(values, (d) => d.peak);
  const [left, right] = d3.extent([...values.map((d) => d.intensity), peak / bandwidth]);
  const roof = [left / 2, peak / bandwidth, right * 2].map((intensity) => ({ intensity, rate: Math.min(peak, intensity * bandwidth) }));
  return describe(Plot.plot({
    width, height: 330, style: FONT, marginTop: 28, marginLeft: 52, marginRight: 20, marginBottom: 42, grid: true,
    x: { ...LABELS, type: "log", label: "operations per byte", tickFormat: (v) => (v < 1000 ? formatError(v) : d3.format("~s")(v)), ticks: width < 450 ? 3 : 5 },
    y: { type: "log", label: "TFLOP/s reached", tickFormat: (v) => formatError(v), ticks: 5 },
    marks: [
      Plot.line(roof, { x: "intensity", y: "rate", strokeWidth: 2, strokeOpacity: 0.7 }),
      Plot.text([roof[1]], { x: "intensity", y: "rate", text: () => `${formatError(peak)} TFLOP/s, ${formatError(bandwidth * 1e3)} GB/s`, dy: -9, textAnchor: "middle" }),
      Plot.dot(values, { x: "intensity", y: "rate", fill: "colour", fillOpacity: 0.65, r: 3.2, tip: true, title: (d) => `${d.name}\n${textAt("problem", d.row)}, ${formatSpeedup(numberAt("speedup", d.row), textAt("clock", d.row))}\n${formatError(d.rate)} TFLOP/s, ${formatShare(numberAt("peak_fraction", d.row))} of the device's peak` }),
    ],
  }), "Operations per second against operations per byte, with the device's roofline");
}

function plotPhases(groups, width) {
  const names = [...new Set(groups.flatMap((group) => Object.keys(group.phases)))];
  const values = groups.flatMap((group) => names.map((phase) => ({ name: group.label, phase, seconds: (group.phases[phase] || 0) / group.samples })));
  return describe(Plot.plot({
    width, height: groups.length * 34 + 62, style: FONT, marginLeft: Math.min(150, width / 3), marginRight: 20, marginBottom: 42,
    x: { ...LABELS, label: "seconds per sample", grid: true }, y: { domain: groups.map(({ label }) => label), label: null, tickFormat: (label) => cutMiddle(label, 20), tickSize: 0 },
    color: { domain: names, range: names.map((_, i) => PALETTE[i % PALETTE.length]) },
    marks: [Plot.barX(values, { x: "seconds", y: "name", fill: "phase", order: names, tip: { format: { x: (v) => `${v.toFixed(2)} s` } }, stroke: "var(--surface)" })],
  }), "Evaluation seconds per sample, by phase");
}

// One candidate: the ratio of each block, by worker-reported and evaluator-measured times.
function plotRatios(timing, width) {
  const { baseline_reported_us: baseline, candidate_reported_us: candidate, baseline_evaluator_us: slow, candidate_evaluator_us: fast } = timing.samples;
  const values = baseline.map((time, i) => ({ block: i + 1, ratio: time / candidate[i], seen: slow[i] / fast[i] }));
  return describe(Plot.plot({
    width, height: 240, style: FONT, marginTop: 28, marginLeft: 50, marginRight: 20, marginBottom: 42,
    x: { ...LABELS, label: "block", ticks: Math.min(10, values.length), tickFormat: "d" }, y: { label: "speedup", grid: true, tickFormat: formatError, nice: true },
    marks: [
      Plot.rectY([timing], { x1: 0.5, x2: values.length + 0.5, y1: "low", y2: "high", fill: PALETTE[0], fillOpacity: 0.12 }),
      Plot.ruleY([timing.speedup], { stroke: PALETTE[0], strokeWidth: 1.5 }),
      Plot.ruleY([1], { stroke: "currentColor", strokeOpacity: 0.5, strokeDasharray: "3,3" }),
      timing.has_two_clocks ? Plot.dot(values, { x: "block", y: "seen", stroke: PALETTE[4], strokeOpacity: 0.7, r: 2.2 }) : null,
      Plot.dot(values, { x: "block", y: "ratio", fill: PALETTE[0], r: 2.6, tip: true, title: (d) => (timing.has_two_clocks ? `block ${d.block}\nreported ${formatSpeedup(d.ratio)}\nevaluator ${formatSpeedup(d.seen)}` : `block ${d.block}\n${formatSpeedup(d.ratio)}`) }),
    ],
  }), "Speedup of every block");
}

function plotTimes(timing, width) {
  const sides = [["baseline", PALETTE[1]], ["candidate", PALETTE[0]]];
  const values = sides.flatMap(([side, colour]) => timing.samples[`${side}_reported_us`].map((us, i) => ({ block: i + 1, us, side: side === "baseline" ? timing.baseline : side, colour })));
  const scale = d3.scaleLog().domain(d3.extent(values, (d) => d.us)).nice();
  const ticks = scale.ticks(5).filter((us) => /^[125]/.test(us.toExponential()));
  return describe(Plot.plot({
    width, height: 240, style: FONT, marginTop: 28, marginLeft: 62, marginRight: 20, marginBottom: 42,
    x: { ...LABELS, label: "block", tickFormat: "d", ticks: Math.min(10, values.length / 2) }, y: { label: "time per call", type: "log", tickFormat: formatTime, grid: true, ticks, domain: scale.domain() },
    marks: [
      Plot.line(values, { x: "block", y: "us", z: "side", stroke: "colour", strokeOpacity: 0.35 }),
      Plot.dot(values, { x: "block", y: "us", fill: "colour", r: 2.4, tip: true, title: (d) => `${d.side}, block ${d.block}\n${formatTime(d.us)}` }),
    ],
  }), "Time per call of every block");
}
