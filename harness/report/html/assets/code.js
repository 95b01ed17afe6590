// Source code: highlighting of Python and of C++ in its strings, numbered lines, marks, and diffs.

const PYTHON_WORDS = new Set("and as assert async await break class continue def del elif else except finally for from global if import in is lambda None nonlocal not or pass raise return True False try while with yield self".split(" "));
const CPP_WORDS = new Set("auto bool break case char class const constexpr continue default delete do double else enum extern false float for if inline int int64_t long namespace new nullptr operator private public restrict return short signed sizeof static struct switch template this true typedef typename unsigned using void volatile while __global__ __device__ __host__ __shared__ __restrict__ __launch_bounds__ __syncthreads half uint32_t size_t".split(" "));
const MOST_COLOURED = 300000;

// Lines of [class, text] pairs.
function colourSource(source) {
  const lines = [[]];
  const put = (kind, text) => {
    text.split("\n").forEach((part, i) => {
      if (i) lines.push([]);
      if (part) lines[lines.length - 1].push([kind, part]);
    });
  };
  if (source.length > MOST_COLOURED) put("", source);
  else colourPython(source, put);
  return lines;
}

const PYTHON_TOKEN = /([rRbBfFuU]{0,2}("""|'''))|(#[^\n]*)|([rRbBfFuU]{0,2}(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))|(@[\w.]+)|(\d[\w.]*)|([A-Za-z_]\w*)|([^\w"'#@]+|[\s\S])/y;

function colourPython(source, put) {
  PYTHON_TOKEN.lastIndex = 0;
  for (let match; (match = PYTHON_TOKEN.exec(source));) {
    const [text, opening, quote, comment, string, decorator, number, word] = match;
    if (opening) {
      const end = source.indexOf(quote, PYTHON_TOKEN.lastIndex);
      const stop = end < 0 ? source.length : end;
      const inner = source.slice(PYTHON_TOKEN.lastIndex, stop);
      put("string", opening);
      if (/[;{]/.test(inner)) colourCpp(inner, put); else put("string", inner);
      put("string", source.slice(stop, stop + (end < 0 ? 0 : 3)));
      PYTHON_TOKEN.lastIndex = stop + (end < 0 ? 0 : 3);
      if (end < 0) return;
    } else put(comment ? "comment" : string ? "string" : decorator ? "special" : number ? "literal" : word && PYTHON_WORDS.has(word) ? "word" : "", text);
  }
}

const CPP_TOKEN = /(\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|(^[ \t]*#[ \t]*\w+)|(\d[\w.]*)|([A-Za-z_]\w*)|([^\w"'\/#]+|[\s\S])/my;

function colourCpp(source, put) {
  CPP_TOKEN.lastIndex = 0;
  for (let match; (match = CPP_TOKEN.exec(source));) {
    const [text, comment, string, directive, number, word] = match;
    put(comment ? "comment" : string ? "string" : directive ? "special" : number ? "literal" : word && CPP_WORDS.has(word) ? "word" : "", text);
  }
}

// marks: line number -> findings on that line.
function renderSource(source, marks = new Map(), prefix = "line") {
  const rows = colourSource(source).map((tokens, i) => {
    const found = marks.get(i + 1);
    const code = h("code", {}, tokens.length ? tokens.map(([kind, text]) => (kind ? h("span", { class: kind }, text) : text)) : "\u200b");
    const notes = (found || []).map((finding) => h("div", { class: `remark ${finding.severity}` }, `${finding.severity}: ${finding.check}: ${firstLine(finding.message)}`));
    return h("li", { id: `${prefix}-${i + 1}`, class: found ? `marked ${found[0].severity}` : "" }, code, notes);
  });
  return h("ol", { class: "source", tabindex: "0" }, rows);
}

function firstLine(text) { return text.split("\n", 1)[0]; }

// Myers' diff as [" " | "-" | "+", line]; null if more than `most` lines differ.
function diffLines(before, after, most = 1500) {
  const n = before.length, m = after.length, trace = [];
  let v = new Map([[1, 0]]);
  for (let d = 0; d <= Math.min(n + m, most); d++) {
    trace.push(new Map(v));
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && (v.get(k - 1) ?? -1) < (v.get(k + 1) ?? -1)) ? v.get(k + 1) : v.get(k - 1) + 1;
      while (x < n && x - k < m && before[x] === after[x - k]) x++;
      v.set(k, x);
      if (x >= n && x - k >= m) return walkBack(before, after, trace, d);
    }
  }
  return null;
}

// trace[d] holds the farthest x of each diagonal before step d.
function walkBack(before, after, trace, depth) {
  const steps = [];
  let x = before.length, y = after.length;
  for (let d = depth; d > 0; d--) {
    const v = trace[d], k = x - y;
    const added = k === -d || (k !== d && (v.get(k - 1) ?? -1) < (v.get(k + 1) ?? -1));
    const fromX = v.get(added ? k + 1 : k - 1), fromY = fromX - (added ? k + 1 : k - 1);
    for (; x > fromX && y > fromY; y--) steps.push([" ", before[--x]]);
    steps.push(added ? ["+", after[fromY]] : ["-", before[fromX]]);
    x = fromX; y = fromY;
  }
  while (x > 0) steps.push([" ", before[--x]]);
  return steps.reverse();
}

// The diff with `around` context lines.
function renderDiff(before, after, around = 3) {
  const steps = diffLines(before.split("\n"), after.split("\n"));
  if (!steps) return h("p", { class: "note" }, "The sources differ too much to show a diff.");
  const near = new Set();
  steps.forEach(([kind], i) => { if (kind !== " ") for (let j = i - around; j <= i + around; j++) near.add(j); });
  if (!near.size) return h("p", { class: "note" }, "The sources are identical.");
  const lines = [];
  let skipped = false;
  steps.forEach(([kind, line], i) => {
    if (!near.has(i)) { skipped = true; return; }
    if (skipped) lines.push(h("li", { class: "gap" }, "⋯"));
    skipped = false;
    lines.push(h("li", { class: kind === "+" ? "added" : kind === "-" ? "removed" : "" }, h("code", {}, `${kind} ${line}`)));
  });
  return h("ol", { class: "source diff", tabindex: "0" }, lines);
}
