// Elements, formats, colours. Strings from data only become text nodes, never markup.

function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

function replaceContent(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter(Boolean));
}

function formatNumber(value) { return value === null ? "–" : value.toLocaleString("en", { maximumFractionDigits: 0 }); }
const CLOCK_SIGNS = { bound: "≥", mixed: "~" };
function formatSpeedup(value, clock) { return value === null || value === undefined ? "–" : `${CLOCK_SIGNS[clock] || ""}${value.toFixed(2)}×`; }
function formatShare(value) { return value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)}%`; }

function formatTime(us) {
  if (us === null || us === undefined || typeof us === "string") return us || "–";
  for (const [limit, factor, unit] of [[1, 1e3, "ns"], [1e3, 1, "µs"], [1e6, 1e-3, "ms"]]) {
    if (Math.abs(us) < limit) return `${Number((us * factor).toPrecision(3))} ${unit}`;
  }
  return `${(us * 1e-6).toFixed(2)} s`;
}

function formatSeconds(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 100) return `${Number(seconds.toPrecision(3))} s`;
  return seconds < 7200 ? `${(seconds / 60).toFixed(0)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

function formatCount(value) {
  if (value === null || value === undefined) return "–";
  for (const [limit, unit] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (value >= limit) return `${Number((value / (unit === "k" ? 1e3 : limit)).toPrecision(3))}${unit}`;
  }
  return formatNumber(value);
}

function formatError(value) {
  return value === null || value === undefined ? "–" : typeof value === "string" ? value : Number(value.toPrecision(3)).toString();
}

function plural(count, word) { return `${formatNumber(count)} ${word}${count === 1 ? "" : "s"}`; }

function debounce(work, wait) {
  let timer = 0;
  return (...values) => { clearTimeout(timer); timer = setTimeout(() => work(...values), wait); };
}

// Okabe-Ito colours, safe for colour-blind readers; neighbours differ strongly.
const PALETTE = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a7a00", "#7f7f7f"];
const STAGE_COLOURS = {
  "no code": "#bdbdbd", rejected: "#7f7f7f", build: "#e69f00", "load, run": "#d55e00",
  wrong: "#cc79a7", suspect: "#f0e442", correct: "#009e73", "not evaluated": "#56b4e9",
};
const NAMED_COLOURS = PALETTE.length - 1;

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

// One colour per model in all charts; models beyond the palette share grey.
function colourOfGroup(place) { return PALETTE[Math.min(place, NAMED_COLOURS)]; }

function swatch(colour) { return h("span", { class: "swatch", style: { background: colour }, "aria-hidden": "true" }); }

function outcomeBadge(outcome) { return h("span", { class: `outcome ${outcome}` }, outcome.replaceAll("_", " ")); }

function href(page, parameters) {
  const given = Object.entries(parameters || {}).filter(([, value]) => value);
  return `#/${page}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
}

function card(title, note, ...content) {
  return h("section", { class: "card", "aria-label": title }, h("h2", {}, title), note && h("p", { class: "note" }, note), ...content);
}
