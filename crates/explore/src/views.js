// What a pane shows: stages of a function decoded, statements as HTML, rows of views. See `page.js` for the words.
'use strict';

// The data of the page, and its largest count, from when the page starts.
let D, maxCount = 0;
function setData(data) {
  D = data;
  maxCount = (D.counts ?? []).reduce((a, b) => Math.max(a, b), 0);
}

const ROW = 18;          // --row of the style

// ---- small helpers ------------------------------------------------------------------------------------------------

const escapes = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const esc = text => text.replace(/[&<>"]/g, c => escapes[c]);
const $ = (selector, root = document) => root.querySelector(selector);

/** An element: `h('div.item.on', { onclick }, 'text', child)`. */
function h(spec, props = {}, ...children) {
  const [tag, ...classes] = spec.split('.');
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(' ');
  for (const [key, value] of Object.entries(props)) {
    if (key in node) node[key] = value; else node.setAttribute(key, value);
  }
  node.append(...children.filter(child => child != null));
  return node;
}

const number = n => n.toLocaleString('en-US').replace(/,/g, ' ');
const short = n => n < 1e4 ? String(n) : n < 1e6 ? (n / 1e3).toPrecision(3) + 'k' : n < 1e9 ? (n / 1e6).toPrecision(3) + 'M' : (n / 1e9).toPrecision(3) + 'G';
const duration = ns => ns < 1e3 ? ns + ' ns' : ns < 1e6 ? (ns / 1e3).toFixed(1) + ' µs' : (ns / 1e6).toFixed(1) + ' ms';
const plural = (n, word) => `${number(n)} ${word}${n === 1 ? '' : 's'}`;

// ---- data: stages of a function --------------------------------------------------------------------------------------

/** The stages of a function up to number `n`: `{ label, kind, sig, rows: [[inst, string, origin]], blocks }`. Made once each. */
function stage(f, n) {
  f.decoded ??= [];
  while (f.decoded.length <= n) {
    const at = f.decoded.length;
    const [label, kind, sig, delta, flat] = f.stages[at];
    const last = at > 0 && f.stages[at - 1][1] === kind || kind === 'roots' ? f.decoded[at - 1] : undefined;
    const rows = [];
    for (let i = 0; i < delta.length;) {
      const [from, count, fresh] = [delta[i], delta[i + 1], delta[i + 2]];
      i += 3;
      for (let k = 0; k < count; k++) rows.push(last.rows[from + k]);
      for (let k = 0; k < fresh; k++, i += 3) rows.push([delta[i], delta[i + 1], delta[i + 2]]);
    }
    f.decoded.push({ label, kind, sig, rows, last, blocks: flat ? blocksOf(flat) : last.blocks });
  }
  return f.decoded[n];
}

function blocksOf(flat) {
  const blocks = [];
  for (let i = 0, first = 0; i < flat.length;) {
    const [id, rows, cold, idom, head, depth, succs] = flat.slice(i, i + 7);
    blocks.push({ id, first, rows, cold: !!cold, idom, head, depth, succs: flat.slice(i + 7, i + 7 + succs), at: blocks.length });
    first += rows;
    i += 7 + succs;
  }
  return blocks;
}

/** The ids of the instructions that a statement uses. */
const usesCache = new Map();
function uses(string) {
  let found = usesCache.get(string);
  if (!found) {
    found = [...D.strings[string].replace(/"(?:[^"\\]|\\.)*"/g, '').matchAll(/%(\d+)/g)].map(m => +m[1]);
    usesCache.set(string, found);
  }
  return found;
}

/** The numbers of a stage's rows and blocks, and by instruction the rows that use it. */
function numbers(f, st) {
  if (st.numbers) return st.numbers;
  const rows = new Map(), users = new Map(), blocks = new Map(), at = new Map();
  let n = 0;
  st.rows.forEach(([inst, string], index) => {
    if (inst) { rows.set(inst, ++n); at.set(inst, index); }
    for (const id of uses(string)) {
      const list = users.get(id);
      if (list) list.push(index); else users.set(id, [index]);
    }
  });
  st.blocks.forEach((block, index) => blocks.set(block.id, index + 1));
  const blockOf = new Array(st.rows.length);
  for (const block of st.blocks) for (let k = 0; k < block.rows; k++) blockOf[block.first + k] = block;
  for (const block of st.blocks) block.count = blockCount(f, st.rows.slice(block.first, block.first + block.rows));
  let width = 1;
  for (const id of users.keys()) if (rows.has(id)) width = Math.max(width, String(rows.get(id)).length);
  return st.numbers = { rows, users, blocks, at, blockOf, width };
}

const countOf = origin => D.counts && origin ? D.counts[origin - 1] : 0;
/** How often a block of a stage of `f` was executed, from the origins of its rows. Rows of the function itself know; a row that was put in from
 *  another function counts all calls of that one, and is asked only where there is no other. */
function blockCount(f, rows) {
  if (!D.counts) return 0;
  const own = rows.filter(row => row[2] && D.funcs[D.of[row[2] - 1]] === f);
  return (own.length ? own : rows).reduce((most, row) => Math.max(most, countOf(row[2])), 0);
}

/** The counts of the origins of a function's code, by the blocks of its last stage. */
function codeCounts(f) {
  if (f.codeCounts || !D.counts) return f.codeCounts;
  f.codeCounts = new Map();
  const st = f.stages.length ? stage(f, f.stages.length - 1) : { blocks: [] };
  for (const block of st.blocks) {
    const rows = st.rows.slice(block.first, block.first + block.rows), count = blockCount(f, rows);
    for (const [, , origin] of rows) f.codeCounts.set(origin, Math.max(count, f.codeCounts.get(origin) ?? 0));
  }
  return f.codeCounts;
}
const codeCount = (f, origin) => D.counts && origin ? codeCounts(f).get(origin) ?? countOf(origin) : 0;

/** How hot a count is, from 0 to 1, on a scale of logarithms. */
const heat = count => count > 0 ? Math.log2(1 + count) / Math.log2(1 + maxCount) : 0;
const heatColour = (count, alpha = 1) => `hsla(var(--hot), ${(Math.pow(heat(count), 2) * alpha).toFixed(3)})`;
/** Rows of one line of the program have one hue; neighbours differ by the golden angle. */
const hue = origin => origin ? Math.round(((D.lines[origin - 1] || origin) * 137.508) % 360) : -1;

// ---- text as HTML ------------------------------------------------------------------------------------------------------

const IR = /("(?:[^"\\]|\\.)*")|(#\s(?:check|throws|roots|\S).*$|^#.*$)|(::[\w.!]+(?:\{(?:[^{}]|\{[^{}]*\})*\})?)|(%\d+)|([§#]\d+)|\b(function|end|low|struct|mutable|abstract|type|primitive|global|goto|if|not|return|unreachable|enter|leave|invoke|dynamic|new|weights)\b|([φπϒ]ᶜ?)|(\b(?:intrinsic|builtin)\s+(?:(?:Base|Core)\.)?|\b(?:Base|Core)\.)|(\b0x[0-9a-f]+\b|\b\d[\d_.]*(?:e[+-]?\d+)?f?\d*\b)/g;
const CLIF = /(;.*$)|(v\d+)|(block\d+)|\b(function|cold|tail|system_v)\b|(\b[iuf](?:8|16|32|64|128)(?:x\d+)?\b)|(\b0x[0-9a-f._p+-]+\b|-?\b\d+\b)|((?<==\s|^\s{4})[a-z][\w.]+)/g;
const ASM = /([#;].*$)|(%[a-z]\w*)|(\$?-?\b0x[0-9a-fA-F]+\b|\$-?\d+)|(block\d+|label\d+)|(^\s*[a-z]\w*)/g;

/** A text in spans. `kinds` are classes by group; `same` is the word that is under the pointer. */
function paint(text, pattern, kinds, rename) {
  let out = '', at = 0;
  for (const m of text.matchAll(pattern)) {
    const group = m.findIndex((part, i) => i > 0 && part !== undefined);
    out += esc(text.slice(at, m.index));
    let word = m[0];
    const kind = kinds[group];
    const id = word;
    if (rename) word = rename(word, kind);
    const marked = kind === 'v' || kind === 'b' ? ` data-w="${esc(id)}"` : '';
    out += `<span class="${kind}${marked && S.word === id ? ' same' : ''}"${marked}>${esc(word)}</span>`;
    at = m.index + m[0].length;
  }
  return out + esc(text.slice(at));
}
const paintIr = (text, rename) => paint(text, IR, ['', 's', 'c', 't', 'v', 'b', 'k', 'k', 'f', 'n_'], rename);
const paintClif = text => paint(text, CLIF, ['', 'c', 'v', 'b', 'k', 't', 'n_', 'o']);
const paintAsm = text => paint(text, ASM, ['', 'c', 'v', 'n_', 'b', 'o']);

/** Puts marks around what is searched for, outside tags. */
function markHits(html) {
  const wanted = esc(S.query).replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return html.replace(/(<[^>]*>)|([^<]+)/g, (all, tag, text) => tag || text.replace(new RegExp(wanted, 'gi'), '<span class="hit">$&</span>'));
}

// ---- views: what a pane shows --------------------------------------------------------------------------------------------

const KINDS = [
  ['Program', [['source', 'Source IR'], ['own', 'Source program']]],
  ['Passes', [['pass', 'IR after selected pass'], ['live', 'Live ranges'], ['read', 'IR as read'], ['high', 'High IR, optimised'], ['lower', 'Low IR, lowered'], ['low', 'Low IR, optimised'], ['roots', 'Low IR with roots']]],
  ['Code', [['clif', 'Cranelift IR'], ['vcode', 'Machine instructions'], ['asm', 'Machine code'], ['frame', 'Frame and root maps']]],
  ['Pictures', [['cfg', 'Control flow'], ['dom', 'Dominator tree'], ['loops', 'Loop nest'], ['calls', 'Call graph']]],
];
const PICTURES = ['cfg', 'dom', 'loops', 'calls'];
const kindName = kind => KINDS.flatMap(group => group[1]).find(([id]) => id === kind)[1];

/** The stage that a kind of view shows of a function, -1 if there is none. */
function stageOf(f, kind) {
  const last = wanted => f.stages.findLastIndex(([, k]) => wanted.includes(k));
  const low = f.stages.findIndex(([, k]) => k === 'low');
  switch (kind) {
    case 'read': return 0;
    case 'high': return last(['high']);
    case 'lower': return low;
    case 'low': return last(['low']);
    case 'roots': return last(['roots']);
    default: return Math.min(S.stage, f.stages.length - 1);
  }
}

const views = new Map();
/** The view of a kind, for the function and the pass that are selected. Views are kept until another function is. */
function viewOf(kind) {
  const f = D.funcs[S.func];
  const onStage = !['source', 'own', 'clif', 'vcode', 'asm', 'frame', 'calls'].includes(kind);
  const key = onStage ? `${kind}/${S.func}/${PICTURES.includes(kind) ? S.stage : stageOf(f, kind)}/${S.ghosts}` : kind === 'source' || kind === 'own' ? kind : `${kind}/${S.func}`;
  let view = views.get(key);
  if (!view) {
    if (views.size > 40) views.clear();
    view = make(kind, f);
    index(view);
    views.set(key, view);
  }
  return view;
}

function make(kind, f) {
  switch (kind) {
    case 'source': return sourceView(D.source, D.lines);
    case 'own': return D.own ? sourceView(D.own, D.owns) : { empty: 'The page was made without the text of a source program: <b>--source FILE</b>.' };
    case 'clif': return textView(f.clif, paintClif, f, 'clif');
    case 'vcode': return textView(f.vcode, paintAsm, f, 'vcode');
    case 'asm': return asmView(f);
    case 'frame': return frameView(f);
    case 'cfg': case 'dom': case 'loops': case 'calls': return { picture: kind };
    case 'live': return f.stages.length ? liveView(f, stageOf(f, kind)) : { empty: refusal(f) };
    default: {
      const at = stageOf(f, kind);
      return at < 0 ? { empty: refusal(f) } : irView(f, at);
    }
  }
}

const refusal = f => `There is no such form of <b>${esc(f.symbol)}</b>.\n\n${esc(f.refusal ?? '')}`;

/** Fills in where the rows of each origin are, and those that changed. */
function index(view) {
  view.rows ??= [];
  view.byOrigin = new Map();
  view.changed = view.rows.flatMap((row, i) => row.change ? [i] : []);
  view.rows.forEach((row, i) => {
    for (const origin of row.os ?? (row.o ? [row.o] : [])) {
      const list = view.byOrigin.get(origin);
      if (list) list.push(i); else view.byOrigin.set(origin, [i]);
    }
  });
}

function sourceView(source, lineOf) {
  const origins = new Map();
  lineOf.forEach((line, i) => { if (line) (origins.get(line) ?? origins.set(line, []).get(line)).push(i + 1); });
  const width = String(source.lines.length).length;
  const rows = source.lines.map((text, i) => {
    const os = origins.get(i + 1) ?? [];
    const count = os.reduce((most, o) => Math.max(most, countOf(o)), 0);
    return { os, o: os[0] ?? 0, text, count, cells: () => `<span class="no" style="width:${width + 2}ch">${i + 1}</span>`, body: () => paintIr(text) };
  });
  return { rows, info: source.name };
}

/** The rows of a stage, with what the pass changed if it is shown as a pass's result. */
function irView(f, at) {
  const st = stage(f, at), old = st.last, ns = numbers(f, st);
  const rows = [{ text: st.sig, o: 0, head: true, cells: () => '', body: () => paintIr(st.sig) }];
  const rename = (st, ns) => (word, kind) =>
    kind === 'v' ? '%' + (ns.rows.get(+word.slice(1)) ?? 0) : kind === 'b' && word[0] === '§' ? '#' + (ns.blocks.get(+word.slice(1)) ?? '?') : word;
  const names = rename(st, ns);
  const blockWidth = String(st.blocks.length).length + 2;
  const defWidth = Math.max(ns.width, old ? numbers(f, old).width : 0);
  const make = (st, ns, index, change, names) => {
    const [inst, string, o] = st.rows[index];
    const block = ns.blockOf[index], isFirst = block.first === index;
    const isUsed = ns.users.has(inst) && inst, n = ns.rows.get(inst);
    const statement = D.strings[string];
    return {
      o, inst, block, index, change, first: isFirst && index > 0, count: block.count, depth: block.depth,
      text: (isUsed ? `%${n} = ` : '') + statement.replace(/%(\d+)|§(\d+)/g, (all, i, b) => i ? '%' + (ns.rows.get(+i) ?? 0) : '#' + (ns.blocks.get(+b) ?? '?')),
      cells: () => `<span class="sign">${{ add: '+', chg: '~', del: '−', mov: '↕' }[change] ?? ''}</span>` +
        `<span class="blk" style="width:${blockWidth + 1}ch">${isFirst ? '#' + ns.blocks.get(block.id) : ''}</span>${loopBars(block.depth)}` +
        `<span class="def" style="width:${defWidth + 2}ch">${isUsed ? `<span class="v${S.word === '%' + inst ? ' same' : ''}" data-w="%${inst}">%${n}</span>` : ''}</span><span class="eq">${isUsed ? '=' : ' '}</span>`,
      body: () => paintIr(statement, names),
    };
  };
  if (!old) {
    st.rows.forEach((_, i) => rows.push(make(st, ns, i, '', names)));
    return { rows, stage: st, f, info: summary(f, at), depthMax: maxDepth(st) };
  }
  // Instructions keep their ids, so that a row is new, other or gone by its id, whatever its number.
  const oldNumbers = numbers(f, old), oldNames = rename(old, oldNumbers);
  const before = new Map(old.rows.map((row, i) => [row[0], [row[1], oldNumbers.blockOf[i].id, i]]));
  const ghosts = new Map();
  let behind = 0, added = 0, removed = 0, changed = 0;
  old.rows.forEach((row, i) => {
    const now = row[0] ? ns.at.get(row[0]) : undefined;
    if (now !== undefined && st.rows[now][1] === row[1]) { behind = row[0]; return; }
    if (now === undefined) { if (row[0]) removed++; } else { changed++; behind = now > 0 ? st.rows[now - 1][0] : 0; }
    if (row[0]) (ghosts.get(behind) ?? ghosts.set(behind, []).get(behind)).push(i);
    if (now !== undefined) behind = row[0];
  });
  const addGhosts = inst => {
    for (const i of S.ghosts ? ghosts.get(inst) ?? [] : []) rows.push({ ...make(old, oldNumbers, i, 'del', oldNames), first: false, ghost: true });
    ghosts.delete(inst);
  };
  addGhosts(0);
  st.rows.forEach(([inst, string], i) => {
    const was = before.get(inst);
    const change = !inst ? '' : !was ? (added++, 'add') : was[0] !== string ? 'chg' : was[1] !== ns.blockOf[i].id ? 'mov' : '';
    rows.push(make(st, ns, i, change, names));
    addGhosts(inst);
  });
  const info = `${summary(f, at)} · +${added} −${removed} ~${changed}`;
  return { rows, stage: st, f, info, changes: true, depthMax: maxDepth(st) };
}

const maxDepth = st => st.blocks.reduce((most, block) => Math.max(most, block.depth), 0);
const loopBars = depth => `<span class="loop" style="${depth ? `border-color:hsla(226,80%,65%,${Math.min(1, .25 * depth)})` : ''}"></span>`;
const summary = (f, at) => {
  const st = stage(f, at);
  return `${st.label === 'read' ? 'as read' : st.label === 'lower' ? 'lowered' : st.label} · ${plural(st.rows.length, 'row')} · ${plural(st.blocks.length, 'block')}`;
};

function textView(part, body, f, kind) {
  if (!part) return { empty: refusal(f) };
  const [origins, joined] = part;
  const lines = joined.split('\n');
  const width = String(lines.length).length;
  const rows = lines.map((text, i) => {
    const isLabel = /^\s*block\d+/.test(text);
    return {
      o: origins[i] ?? 0, text, first: isLabel, label: isLabel, count: codeCount(f, origins[i]),
      cells: () => `<span class="no" style="width:${width + 2}ch">${i + 1}</span>`, body: () => body(text),
    };
  });
  return { rows, f, info: plural(rows.length, 'row') };
}

function asmView(f) {
  if (!f.asm) return { empty: refusal(f) };
  const [origins, joined] = f.asm;
  const lines = joined.split('\n').map(line => line.split('\t'));
  const width = (lines.at(-1)?.[0].length ?? 1) + 1;
  const widest = Math.min(8, lines.reduce((most, [, hex]) => Math.max(most, hex.length / 2), 1));
  // Branch targets start a group of rows.
  const targets = new Set(lines.map(([, , text]) => /^(?:j\w+|loop\w*)\s+(?:0x)?([0-9a-f]+)/.exec(text)?.[1]).filter(Boolean));
  const rows = lines.map(([offset, hex, text], i) => ({
    o: origins[i], text: `${offset} ${hex} ${text}`, first: targets.has(offset), count: codeCount(f, origins[i]),
    cells: () => `<span class="off" style="width:${width + 2}ch">${offset}</span><span class="hex" style="width:${widest * 2.8 + 1}ch" title="${hex.replace(/(..)/g, '$1 ')}">${hex.replace(/(..)(?=.)/g, '$1 ')}</span>`,
    body: () => paintAsm(text),
  }));
  return { rows, f, info: `${number(f.size)} bytes · ${plural(rows.length, 'instruction')}` };
}

/** The frame as code generation left it: its size, and for each call the words that hold objects. */
function frameView(f) {
  if (!f.asm) return { empty: refusal(f) };
  const offsets = f.asm[1].split('\n').map(line => parseInt(line, 16));
  const words = [...new Set(f.maps.flatMap(map => map.slice(1)))].sort((a, b) => a - b);
  const rows = [{ o: 0, text: `frame of ${f.frame} bytes; ${plural(words.length, 'word')} for objects; ${plural(f.maps.length, 'safepoint')} with roots`, head: true }];
  if (words.length) rows.push({ o: 0, text: `return to   ${words.map(word => `fp${word < 0 ? '−' : '+'}${Math.abs(word)}`.padEnd(8)).join('')}`, head: true });
  for (const [at, ...held] of f.maps) {
    // The call is the instruction that ends where it returns to.
    const i = offsets.findLastIndex(offset => offset < at);
    rows.push({ o: f.asm[0][i] ?? 0, text: `${at.toString(16).padStart(8)}    ${words.map(word => (held.includes(word) ? '●' : '·').padEnd(8)).join('')}` });
  }
  for (const row of rows) Object.assign(row, { count: countOf(row.o), cells: () => '', body: () => esc(row.text).replace(/●/g, '<span class="k">●</span>') });
  return { rows, f, info: `${f.frame} bytes` };
}
