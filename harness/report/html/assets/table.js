// A sortable table with pages; j and k move between rows, Enter opens one.

const PAGE_ROWS = 100;

// columns: {name, label, number, title, cell(row), key(row)}; key is the sort key, null if missing.
function makeTable({ columns, rows, sort, onSort, open, page = 0, onPage, caption }) {
  const last = Math.max(0, Math.ceil(rows.length / PAGE_ROWS) - 1);
  const current = Math.min(page, last);
  const shown = rows.slice(current * PAGE_ROWS, (current + 1) * PAGE_ROWS);
  const body = h("tbody", {}, shown.map((row) => makeRow(columns, row, open)));
  const head = h("thead", {}, h("tr", {}, columns.map((column) => makeHead(column, sort, onSort))));
  const table = h("table", { class: "list" }, caption && h("caption", {}, caption), head, body);
  const pager = last > 0 && makePager(current, last, rows.length, onPage);
  return h("div", {}, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption || "Table" }, table), pager);
}

function makeHead(column, sort, onSort) {
  const direction = sort === column.name ? "ascending" : sort === `-${column.name}` ? "descending" : null;
  const next = direction === "descending" ? column.name : direction === "ascending" ? `-${column.name}` : column.number ? `-${column.name}` : column.name;
  const mark = direction === "ascending" ? " ▲" : direction === "descending" ? " ▼" : "";
  const label = onSort && column.name
    ? h("button", { type: "button", title: column.title, "data-column": column.name, onclick: () => onSort(next) }, column.label, h("span", { "aria-hidden": "true" }, mark))
    : h("span", { title: column.title }, column.label);
  return h("th", { scope: "col", class: column.number ? "number" : "", "aria-sort": direction }, label);
}

function makeRow(columns, row, open) {
  const cells = columns.map((column) => h("td", { class: [column.number && "number", column.class].filter(Boolean).join(" ") }, column.cell(row)));
  if (!open) return h("tr", {}, cells);
  return h("tr", {
    tabindex: "0",
    class: "opens",
    onclick: (event) => { if (!event.target.closest("a, button") && !String(getSelection())) open(row); },
    onkeydown: (event) => { if (event.key === "Enter" && event.target === event.currentTarget) open(row); },
  }, cells);
}

function makePager(current, last, count, onPage) {
  const step = (to, label) => h("button", { type: "button", disabled: to < 0 || to > last, onclick: () => onPage(to) }, label);
  const range = `${formatNumber(current * PAGE_ROWS + 1)}–${formatNumber(Math.min(count, (current + 1) * PAGE_ROWS))} of ${formatNumber(count)}`;
  return h("div", { class: "pager" }, step(current - 1, "← Previous"), h("span", {}, range), step(current + 1, "Next →"));
}

function sortByKey(rows, columns, sort) {
  const column = columns.find(({ name }) => name === sort.replace(/^-/, ""));
  if (!column) return rows;
  const sign = sort.startsWith("-") ? -1 : 1;
  return rows.slice().sort((a, b) => {
    const x = column.key(a), y = column.key(b);
    if (x === null || y === null) return (x === null) - (y === null);
    return sign * (typeof x === "string" ? x.localeCompare(y) : x - y);
  });
}

function moveFocus(step) {
  const rows = [...document.querySelectorAll("tr.opens")];
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement.closest("tr.opens"));
  const next = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? (step > 0 ? 0 : rows.length - 1) : at + step))];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}
