// Starts the page, routes by the URL's hash, and handles keys.

const main = document.getElementById("main"), help = document.getElementById("help");
let shown = 0;

function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const parameters = new URLSearchParams(query || ""), turn = ++shown;
  const page = path.startsWith("candidate/") || path === "evaluations" ? "evaluations" : "overview";
  for (const link of document.querySelectorAll("header nav a")) {
    if (link.dataset.page === page) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  document.title = document.querySelector("header .title").textContent;
  main.classList.toggle("wide", path === "evaluations");
  if (path.startsWith("candidate/")) {
    showCandidate(main, Number(path.split("/")[1]), () => turn === shown).then(() => { scrollTo(0, 0); main.dataset.ready = location.hash; }).catch(showError);
    return;
  }
  if (path === "evaluations") showEvaluations(main, parameters); else showOverview(main, parameters);
  main.dataset.ready = location.hash || "#/";
}

function showError(error) {
  replaceContent(main, h("h1", {}, "This page cannot be shown"), h("p", {}, `${error}`), h("p", {}, "The file may be incomplete: create the report again. A browser of 2024 or later is required."));
  throw error;
}

function toggleTheme() {
  const dark = !isDark();
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  try { localStorage.setItem("harness-theme", document.documentElement.dataset.theme); } catch { /* storage is disabled */ }
  recolour();
}

function recolour() {
  if (!DATA.index) return;
  if (main.querySelector(".heat")) route();
  for (const plot of document.querySelectorAll(".plot")) plot.dispatchEvent(new Event("recolour"));
}

const KEYS = {
  "/": () => main.querySelector("input[type=search]")?.focus(),
  "?": () => help.showModal(),
  o: () => { location.hash = "#/"; },
  e: () => { location.hash = "#/evaluations"; },
  u: () => document.getElementById("back")?.click(),
  d: toggleTheme,
  j: () => step(1),
  k: () => step(-1),
};

function step(by) {
  const id = location.hash.match(/^#\/candidate\/(\d+)/);
  if (!id) { moveFocus(by); return; }
  const to = neighbour(findRow(Number(id[1])), by);
  if (to !== undefined) location.hash = `#/candidate/${numberAt("id", to)}`;
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, select, textarea");
  if (typing && event.key === "Escape") event.target.blur();
  if (typing || help.open || event.ctrlKey || event.metaKey || event.altKey || !(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key]();
});

document.getElementById("theme").addEventListener("click", toggleTheme);
document.getElementById("keys").addEventListener("click", () => help.showModal());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
addEventListener("hashchange", route);
// Printing expands folded sections.
addEventListener("beforeprint", () => { for (const details of document.querySelectorAll("details:not([open])")) { details.open = true; details.dataset.folded = ""; } });
addEventListener("afterprint", () => { for (const details of document.querySelectorAll("details[data-folded]")) { details.open = false; delete details.dataset.folded; } });

try {
  const theme = localStorage.getItem("harness-theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch { /* as above */ }
unpackStart(document).then(route).catch(showError);
