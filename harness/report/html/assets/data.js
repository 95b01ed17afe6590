// The file's data blocks, unpacked on demand. No DOM output here.
"use strict";

const DATA = { index: null, overview: null, references: null, places: null };
const unpacked = new Map();
let source = document; // that has the blocks: of a live page, the latest one that was read

function decodeBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function unpack(name, from = source) {
  const bytes = decodeBase64(from.getElementById(`block-${name}`).textContent);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).json();
}

async function unpackStart(from) {
  const names = Object.keys(DATA);
  const blocks = await Promise.all(names.map((name) => unpack(name, from)));
  names.forEach((name, i) => { DATA[name] = blocks[i]; });
  source = from;
  unpacked.clear();
}

// One evaluation's record from its shard; null if omitted. The last shards are cached.
async function loadRecord(kind, row) {
  const number = DATA.places[kind][row];
  if (number < 0) return null;
  const name = `${kind}-${number}`;
  if (!unpacked.has(name)) {
    if (unpacked.size >= 8) unpacked.delete(unpacked.keys().next().value);
    unpacked.set(name, unpack(name));
  }
  const shard = await unpacked.get(name);
  const record = shard.records[numberAt("id", row)];
  return record ? { ...record, textOf: (reference) => (reference === null || reference === undefined ? null : shard.texts[reference]) } : null;
}

// Row numbers count from 0 in the order of evaluation ids.
function numberAt(name, row) { return DATA.index.numbers[name][row]; }

function textAt(name, row) {
  const column = DATA.index.texts[name];
  const code = column.codes[row];
  return code < 0 ? "" : column.texts[code];
}

function findRow(id) {
  const ids = DATA.index.numbers.id;
  let low = 0, high = ids.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (ids[middle] === id) return middle;
    if (ids[middle] < id) low = middle + 1; else high = middle - 1;
  }
  return -1;
}

// Columns that can be filtered by name; the others are searched as text.
const FILTERS = ["model", "problem", "outcome", "device", "workload", "language", "suite", "run", "prompt", "baseline", "dtype", "clock"];
const SEARCHED = ["model", "problem", "run", "outcome", "device", "prompt", "language", "verdict", "message", "findings", "candidate", "hardware"];

// A test per row for a text such as: softmax outcome:correct model:"a b" speedup>1.2
function compileQuery(text) {
  const tests = [];
  for (const [, term] of text.matchAll(/((?:"[^"]*"|\S)+)/g)) {
    const compared = term.match(/^(\w+)(>=|<=|>|<|=)(-?[\d.]+)$/);
    const named = term.match(/^(\w+):(.*)$/s);
    if (compared && compared[1] in DATA.index.numbers) tests.push(compareNumber(...compared.slice(1)));
    else if (named && named[1] in DATA.index.texts) tests.push(matchColumns([named[1]], unquote(named[2]), /^"/.test(named[2])));
    else tests.push(matchColumns(SEARCHED, unquote(term), false));
  }
  return (row) => tests.every((test) => test(row));
}

function unquote(text) { return text.replaceAll('"', ""); }

function compareNumber(name, operator, limit) {
  const values = DATA.index.numbers[name], bound = Number(limit);
  const tests = { ">": (v) => v > bound, "<": (v) => v < bound, ">=": (v) => v >= bound, "<=": (v) => v <= bound, "=": (v) => v === bound };
  return (row) => values[row] !== null && tests[operator](values[row]);
}

// Tests each distinct string once.
function matchColumns(names, wanted, whole) {
  const needle = wanted.toLowerCase();
  const matches = (text) => (whole ? text.toLowerCase() === needle : text.toLowerCase().includes(needle));
  const columns = names.map((name) => {
    const { texts, codes } = DATA.index.texts[name];
    return { codes, hits: texts.map(matches) };
  });
  return (row) => columns.some(({ codes, hits }) => codes[row] >= 0 && hits[codes[row]]);
}

function orderRows(rows, sort) {
  if (!sort) return rows;
  const name = sort.replace(/^-/, ""), sign = sort.startsWith("-") ? -1 : 1;
  const key = name in DATA.index.numbers ? DATA.index.numbers[name] : rankTexts(name);
  if (!key) return rows;
  // Missing values are last in either direction.
  return rows.slice().sort((a, b) => {
    const x = key[a], y = key[b];
    if (x === y) return a - b;
    if (x === null) return 1;
    if (y === null) return -1;
    return sign * (x - y);
  });
}

function rankTexts(name) {
  const column = DATA.index.texts[name];
  if (!column) return null;
  const order = column.texts.map((text, code) => [text, code]).sort((a, b) => (a[0] < b[0] ? -1 : 1));
  const rank = new Map(order.map(([, code], position) => [code, position]));
  return column.codes.map((code) => (code < 0 ? null : rank.get(code)));
}
