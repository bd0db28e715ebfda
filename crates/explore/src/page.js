// The page of `brolga explore`: columns of rows that light up together, search, keys. No library, no network. Pictures are in `pictures.js`.
//
//   data ─ decode ─► functions ─ stages ─► rows ─ views ─► panes
//                                                │            └─ only the rows in sight are elements
//                                                └─ origin: the row of the program that a row comes from
//
// Words. A *view* is a list of rows, or a picture, made from one function (`viewOf`). A *pane* shows one view and has a place on
// the screen. A *row* is { o: origin, html(), text, … }. The *selection* is a set of origins, and one row where it was made.
//
// Invariants. All state is in `S`; `draw` makes the screen from it. A view does not change when it is made: what moves (selection, search,
// hover) is looked up while a row is drawn. Work for one step is in proportion to the rows in sight, but for one pass over the rows of the
// open views when the selection changes.
'use strict';

const OVERSCAN = 4;      // rows drawn beyond each edge

// ---- state -------------------------------------------------------------------------------------------------------------

const S = {
  func: 0, stage: 0, ghosts: true, tint: false, allSteps: false,
  query: '', word: null, theme: 'dark',
  origins: new Set(),   // what lights up
  panes: [], focus: 0,
};
let live = null;        // rows in which the selected value is needed: { pane, rows: Set }

// ---- panes ----------------------------------------------------------------------------------------------------------------

const isLit = row => row.os ? row.os.some(o => S.origins.has(o)) : S.origins.has(row.o);

/** Colours of the ruler, read once for each theme: to ask for them makes the browser compute styles. */
let colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement), colour = name => style.getPropertyValue(name);
  colours = { add: colour('--add'), del: colour('--del'), chg: colour('--chg'), mov: colour('--accent'), lit: colour('--lit-edge'), hit: '#eab308' };
}

/** Panes that were scrolled and not drawn since. All are measured before one is drawn, so that the browser computes the layout once for a frame. */
const moved = new Set();
function hasMoved(pane) {
  if (!moved.size) requestAnimationFrame(() => {
    const panes = [...moved], tops = panes.map(pane => pane.scroll.scrollTop);
    moved.clear();
    panes.forEach((pane, i) => pane.draw(false, tops[i]));
  });
  moved.add(pane);
}

/** A pane: a bar with the choice of the view, rows or a picture, and a ruler. */
class Pane {
  constructor(kind) {
    this.kind = kind;
    this.column = { weight: 1 };
    this.weight = 1;
    this.row = -1;
    this.select = h('select', { title: 'What this pane shows', onchange: () => this.show(this.select.value) });
    for (const [label, kinds] of KINDS) {
      const options = kinds.filter(([id]) => id !== 'own' || D.own).map(([id, name]) => h('option', { value: id }, name));
      this.select.append(h('optgroup', { label }, ...options));
    }
    this.info = h('span.info');
    const beside = h('button', { title: 'Another pane beside this one', onclick: () => addPane(this, false) }, '+');
    const below = h('button', { title: 'Another pane below this one', onclick: () => addPane(this, true) }, '↧');
    const close = h('button', { title: 'Close this pane', onclick: () => closePane(this) }, '×');
    this.holder = h('div.space-holder');
    this.scroll = h('div.scroll', { tabIndex: 0 }, this.holder);
    this.ruler = h('canvas.ruler');
    this.body = h('div.body', {}, this.scroll, this.ruler);
    this.node = h('section.pane', {}, h('div.bar', {}, this.select, this.info, beside, below, close), this.body);
    this.scroll.addEventListener('scroll', () => hasMoved(this));
    this.node.addEventListener('pointerdown', () => focusPane(S.panes.indexOf(this)), true);
    this.holder.addEventListener('click', event => this.clicked(event));
    this.holder.addEventListener('mouseover', event => hoverWord(event.target.dataset?.w ?? null));
    this.holder.addEventListener('mouseleave', () => hoverWord(null));
    this.ruler.addEventListener('pointerdown', event => {
      this.scroll.scrollTop = event.offsetY / this.ruler.clientHeight * this.holder.clientHeight - this.scroll.clientHeight / 2;
    });
    new ResizeObserver(() => { this.measure(); this.draw(true); this.rule(); }).observe(this.body);
  }

  /** Sizes are measured when they change, not while rows are drawn. */
  measure() {
    this.height = this.scroll.clientHeight;
    this.rulerHeight = this.ruler.clientHeight;
  }

  show(kind) {
    this.kind = kind;
    this.row = -1;
    this.refresh();
    this.reveal();
  }

  /** Shows the view of the present function and pass. */
  refresh() {
    const view = viewOf(this.kind);
    const isNew = view !== this.view;
    this.view = view;
    this.select.value = this.kind;
    this.info.textContent = view.info ?? '';
    this.info.title = view.info ?? '';
    $('.picture', this.body)?.remove();
    $('.empty', this.body)?.remove();
    this.scroll.hidden = this.ruler.hidden = !!(view.picture || view.empty);
    if (view.picture) {
      this.info.textContent = '';
      return drawPicture(this);
    }
    if (view.empty) return this.body.append(h('div.empty', { innerHTML: view.empty }));
    this.measure();
    if (isNew) {
      this.drawn = null;
      if (this.row >= view.rows.length) this.row = -1;
      this.holder.style.height = view.rows.length * ROW + 60 + 'px';
      const widest = view.rows.reduce((most, row) => Math.max(most, row.text.length), 0);
      this.holder.style.minWidth = `${Math.min(widest, 400) + 22}ch`;
      this.holder.style.font = '12px var(--mono)';
    }
    this.draw(true);
    this.rule();
  }

  /** Makes elements of the rows in sight. */
  draw(always, top = this.scroll.scrollTop) {
    const view = this.view;
    if (!view?.rows.length || view.picture) return;
    const height = this.height;
    const first = Math.max(0, Math.floor(top / ROW) - OVERSCAN);
    const end = Math.min(view.rows.length, Math.ceil((top + height) / ROW) + OVERSCAN);
    if (!always && this.covers(top)) return;
    let html = '';
    for (let i = first; i < end; i++) html += this.rowHtml(view.rows[i], i);
    this.holder.innerHTML = html;
    this.drawn = [first, end];
  }

  /** Whether all rows in sight are elements already. */
  covers(top) {
    const [from, to] = this.drawn ?? [0, -1];
    return Math.floor(top / ROW) >= from && Math.min(this.view.rows.length, Math.ceil((top + this.height) / ROW)) <= to;
  }

  /** Shows the selection: by classes of the elements that are there, or by drawing rows that were not. */
  light(top) {
    if (!this.view?.rows.length) return;
    if (!this.covers(top)) return this.draw(true, top);
    const isLive = live?.pane === this;
    for (const element of this.holder.children) {
      const i = +element.dataset.i;
      element.classList.toggle('lit', isLit(this.view.rows[i]));
      element.classList.toggle('sel', i === this.row);
      element.classList.toggle('alive', isLive && live.rows.has(i));
    }
  }

  rowHtml(row, i) {
    const classes = ['r'];
    if (row.head) classes.push('head');
    if (row.first) classes.push('first');
    if (row.change) classes.push(row.change);
    if (isLit(row)) classes.push('lit');
    if (i === this.row) classes.push('sel');
    if (live?.pane === this && live.rows.has(i)) classes.push('alive');
    const colour = hue(row.o);
    const tint = S.tint && colour >= 0 && !row.change ? `background-color:hsla(${colour},var(--tint),.16);` : '';
    let body = row.body();
    if (S.query && row.text.toLowerCase().includes(S.query.toLowerCase())) body = markHits(body);
    const heatCell = D.counts ? `<span class="heat" style="background:${heatColour(row.count)}" title="${row.count ? number(row.count) + ' times' : ''}"></span>` : '';
    const count = D.counts && this.kind === 'source' ? `<span class="count" style="width:7ch">${row.count ? short(row.count) : ''}</span>` : '';
    const liveCell = row.inst ? '<span class="live"></span>' : '';
    return `<div class="${classes.join(' ')}" data-i="${i}" style="top:${i * ROW}px;${tint}">${heatCell}<span class="hue" style="${colour >= 0 ? `background:hsla(${colour},var(--stripe),.75)` : ''}"></span>${liveCell}${row.cells()}${count}<span class="text">${body}</span></div>`;
  }

  clicked(event) {
    const element = event.target.closest('.r');
    if (!element) return;
    const word = event.target.dataset?.w;
    // A click on the name of a value or block goes to where it is made.
    const target = word && (event.metaKey || event.ctrlKey) ? this.definition(word) : -1;
    selectRow(this, target >= 0 ? target : +element.dataset.i);
  }

  /** The row that makes a value, or that a block begins with. */
  definition(word) {
    const rows = this.view.rows;
    if (word[0] === '%') return rows.findIndex(row => row.inst === +word.slice(1) && !row.ghost);
    if (word[0] === '§') return rows.findIndex(row => row.block?.id === +word.slice(1) && row.index === row.block.first && !row.ghost);
    return rows.findIndex(row => row.text.trimStart().startsWith(word + ' =') || row.text.startsWith(word + '(') || row.text.startsWith(word + ':'));
  }

  /** Brings a row into sight, a third from the top if it is not. */
  bring(i) {
    const top = this.scroll.scrollTop, height = this.height;
    if (i * ROW < top + ROW || (i + 2) * ROW > top + height) this.scroll.scrollTop = Math.max(0, i * ROW - height / 3);
  }

  /** Brings the first row that is lit into sight, if none is. */
  reveal() {
    const view = this.view;
    if (!view || view.picture || !S.origins.size) return;
    const top = this.scroll.scrollTop / ROW, end = top + this.height / ROW - 1;
    let least = Infinity, seen = false;
    for (const origin of S.origins) for (const i of view.byOrigin.get(origin) ?? []) {
      least = Math.min(least, i);
      seen ||= i >= top && i < end;
    }
    if (!seen && least < Infinity) this.bring(least);
  }

  /** Draws the ruler: changes and what was found, which stay while the selection moves, and what is lit. */
  rule() {
    const canvas = this.ruler, view = this.view;
    if (!view?.rows.length || canvas.hidden) return;
    const [width, height] = [10, this.rulerHeight], ratio = devicePixelRatio || 1;
    if (!height) return;
    const scale = Math.min(ROW, (height - 2) / (view.rows.length + 3)), size = Math.max(2, Math.min(scale, 4));
    const mark = (g, i, x, width, colour) => { g.fillStyle = colour; g.fillRect(x, i * scale, width, size); };
    const sized = canvas => {
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      const g = canvas.getContext('2d');
      g.scale(ratio, ratio);
      return g;
    };
    const key = `${height}/${ratio}/${S.theme}/${S.query}`;
    if (this.ruled?.view !== view || this.ruled.key !== key) {
      const still = document.createElement('canvas'), g = sized(still), query = S.query.toLowerCase();
      // Of rows that share a pixel one is drawn.
      let last = -1;
      for (const i of view.changed) {
        const y = Math.floor(i * scale * ratio), colour = colours[view.rows[i].change];
        if (y !== last) mark(g, i, 1, 3, colour);
        last = y;
      }
      if (query) view.rows.forEach((row, i) => { if (row.text.toLowerCase().includes(query)) mark(g, i, 1, 8, colours.hit); });
      this.ruled = { view, key, still, g: sized(canvas) };
    }
    const { still, g } = this.ruled;
    g.clearRect(0, 0, width, height);
    g.drawImage(still, 0, 0, width, height);
    for (const origin of S.origins) for (const i of view.byOrigin.get(origin) ?? []) mark(g, i, 5, 4, colours.lit);
  }
}

/** A pane after another one: in a column of its own, or in the same one below. */
function addPane(after, isBelow) {
  const pane = new Pane('cfg');
  if (isBelow) pane.column = after.column;
  const last = isBelow ? after : S.panes.findLast(pane => pane.column === after.column);
  S.panes.splice(S.panes.indexOf(last) + 1, 0, pane);
  layoutPanes();
  pane.refresh();
  focusPane(S.panes.indexOf(pane));
  setHash();
}

function closePane(pane) {
  if (S.panes.length === 1) return;
  S.panes.splice(S.panes.indexOf(pane), 1);
  layoutPanes();
  focusPane(Math.min(S.focus, S.panes.length - 1));
  setHash();
}

/** Puts the panes into their columns, with lines between them that can be moved. Panes of one column follow each other. */
function layoutPanes() {
  const box = $('#panes');
  box.replaceChildren();
  let last;
  for (const pane of S.panes) {
    pane.node.style.flex = `${pane.weight} 1 0`;
    if (last?.column === pane.column) {
      pane.column.node.append(grip(last, pane, true), pane.node);
    } else {
      pane.column.node = h('div.column', {}, pane.node);
      pane.column.node.style.flex = `${pane.column.weight} 1 0`;
      if (last) box.append(grip(last.column, pane.column, false));
      box.append(pane.column.node);
    }
    last = pane;
  }
}

/** The line between two columns, or two panes of one: both have a weight and an element. */
function grip(first, second, isBelow) {
  const node = h(isBelow ? 'div.grip.flat' : 'div.grip', { title: 'Drag to resize; double click for equal sizes' });
  const set = part => { part.node.style.flex = `${part.weight} 1 0`; };
  node.ondblclick = () => { first.weight = second.weight = (first.weight + second.weight) / 2; set(first); set(second); };
  node.onpointerdown = event => {
    const size = part => isBelow ? part.node.offsetHeight : part.node.offsetWidth, at = event => isBelow ? event.clientY : event.clientX;
    const [a, b] = [size(first), size(second)], sum = first.weight + second.weight, from = at(event);
    node.setPointerCapture(event.pointerId);
    node.classList.add('drag');
    node.onpointermove = event => {
      const share = Math.min(.95, Math.max(.05, (a + at(event) - from) / (a + b)));
      first.weight = sum * share;
      second.weight = sum - first.weight;
      set(first);
      set(second);
    };
    node.onpointerup = () => { node.onpointermove = null; node.classList.remove('drag'); };
  };
  return node;
}

function focusPane(i) {
  S.focus = i;
  S.panes.forEach((pane, n) => pane.node.classList.toggle('focus', n === i));
}

// ---- selection -------------------------------------------------------------------------------------------------------------

/** Selects a row: everything that comes from the same row of the program lights up. */
function selectRow(pane, i) {
  const row = pane.view.rows[i];
  if (!row) return;
  for (const other of S.panes) if (other !== pane) other.row = -1;
  pane.row = i;
  const os = row.os ?? (row.o ? [row.o] : []);
  S.origins = new Set(os);
  // A row of the source may be in another function than the one that is shown.
  const owner = os.length ? D.of[os[0] - 1] : -1;
  const followed = ['source', 'own'].includes(pane.kind) && owner >= 0 && owner !== S.func;
  if (followed && !S.panes.some(other => other !== pane && os.some(o => other.view?.byOrigin?.has(o)))) {
    openFunction(owner, true);
  }
  live = row.inst && !row.ghost && pane.view.stage ? { pane, rows: liveRows(pane.view, row) } : null;
  pane.bring(i);
  drawSelection(pane);
}

function drawSelection(from) {
  for (const pane of S.panes) if (pane !== from) pane.reveal();
  // All that is measured comes before all that is changed, so that the browser computes the layout once.
  const tops = S.panes.map(pane => pane.scroll.scrollTop);
  S.panes.forEach((pane, i) => {
    if (pane.view?.picture) litNodes(pane); else { pane.light(tops[i]); pane.rule(); }
  });
  status();
}

function clearSelection() {
  S.origins = new Set();
  live = null;
  for (const pane of S.panes) pane.row = -1;
  setQuery('');
  drawSelection(null);
}

function hoverWord(word) {
  if (word === S.word) return;
  S.word = word;
  for (const node of document.querySelectorAll('.same')) node.classList.remove('same');
  if (word) for (const node of document.querySelectorAll('[data-w]')) if (node.dataset.w === word) node.classList.add('same');
}

/** How many rows of a function's CLIF or machine code come from each origin. */
function rowsByOrigin(f, kind) {
  f.perOrigin ??= {};
  return f.perOrigin[kind] ??= f[kind][0].reduce((counts, o) => counts.set(o, (counts.get(o) ?? 0) + 1), new Map());
}

function status() {
  const box = $('footer');
  const f = D.funcs[S.func];
  const parts = [h('span', {}, h('b', {}, f.symbol))];
  if (S.origins.size) {
    const [origin] = S.origins;
    const line = D.lines[origin - 1], owner = D.funcs[D.of[origin - 1]];
    const text = line ? D.source.lines[line - 1].replace(/^\d*[\s│└─┄]+/, '') : '';
    parts.push(h('span', {}, `${line ? 'line ' : ''}`, h('b', {}, line ? String(line) : 'no line'), owner && owner !== f ? ` of ${owner.symbol}` : ''));
    if (text) parts.push(h('code', {}, text));
    if (D.counts) parts.push(h('span', {}, h('b', {}, number(countOf(origin))), ' times'));
    for (const [kind, word] of [['clif', 'row of CLIF'], ['asm', 'instruction']]) {
      if (!f[kind]) continue;
      const rows = rowsByOrigin(f, kind), n = [...S.origins].reduce((sum, o) => sum + (rows.get(o) ?? 0), 0);
      parts.push(h('span', {}, h('b', {}, String(n)), ' ' + (n === 1 ? word : word.replace(/^\w+/, '$&s'))));
    }
  } else {
    parts.push(h('span', {}, 'Select a row: what comes from it lights up in every pane'));
  }
  box.replaceChildren(...parts, h('span.space'), h('span', { innerHTML: '<kbd>[</kbd> <kbd>]</kbd> pass &nbsp; <kbd>{</kbd> <kbd>}</kbd> function &nbsp; <kbd>/</kbd> search &nbsp; <kbd>?</kbd> keys' }));
}

// ---- side: functions and passes -----------------------------------------------------------------------------------------------

function openFunction(i, keepSelection) {
  const wasLast = S.stage >= D.funcs[S.func].stages.length - 1;
  S.func = i;
  const f = D.funcs[i];
  S.stage = wasLast ? f.stages.length - 1 : defaultStage(f);
  if (!keepSelection) { S.origins = new Set(); for (const pane of S.panes) pane.row = -1; }
  live = null;
  drawFunctions();
  drawSteps();
  for (const pane of S.panes) {
    pane.refresh();
    if (!['source', 'own'].includes(pane.kind)) pane.scroll.scrollTop = 0;
    if (pane.kind === 'source' && f.line && !keepSelection) pane.scroll.scrollTop = Math.max(0, (f.line - 2) * ROW);
  }
  status();
  setHash();
}

/** The stage that is shown first: the last one of high IR that a pass changed. */
const defaultStage = f => Math.max(0, f.stages.findLastIndex(([, kind]) => kind === 'high'));

function openStage(n, keepPanes) {
  S.stage = n;
  live = null;
  drawSteps();
  // The pane of passes, or one that shows a fixed stage, comes to show it.
  if (!keepPanes && !S.panes.some(pane => pane.kind === 'pass')) {
    const pane = S.panes.find(pane => ['read', 'high', 'lower', 'low', 'roots'].includes(pane.kind)) ?? S.panes[S.focus];
    pane.kind = 'pass';
  }
  for (const pane of S.panes) {
    if (pane.kind === 'pass' || pane.kind === 'live' || pane.view?.picture) {
      pane.row = pane.kind === 'pass' ? -1 : pane.row;
      pane.refresh();
      pane.reveal();
      if (pane.kind === 'pass' && !S.origins.size) {
        const first = pane.view.rows.findIndex(row => row.change);
        if (first >= 0) pane.bring(first);
      }
    }
  }
  status();
  setHash();
}

function drawFunctions() {
  const wanted = $('#funcfilter').value.toLowerCase();
  const list = $('.list.funcs');
  const entries = D.run?.entries;
  const most = entries ? Math.max(1, ...entries) : 1;
  list.replaceChildren(...D.funcs.flatMap((f, i) => {
    if (!f.symbol.toLowerCase().includes(wanted)) return [];
    const node = h('div.item', { title: f.refusal ?? f.symbol, onclick: () => openFunction(i) },
      h('span.label', {}, f.symbol),
      entries?.[i] ? h('span.n', { title: `called ${number(entries[i])} times` }, short(entries[i]) + '×') : null,
      h('span.n.size', { title: 'Bytes of machine code' }, f.size ? short(f.size) + ' B' : f.refusal ? 'none' : ''));
    if (entries?.[i]) node.append(h('span.heat', { style: `width:${100 * Math.log(1 + entries[i]) / Math.log(1 + most)}%` }));
    node.classList.toggle('on', i === S.func);
    node.classList.toggle('refused', !!f.refusal);
    return [node];
  }));
  $('.item.on', list)?.scrollIntoView({ block: 'nearest' });
}

const PHASES = { high: 'High IR', lower: 'Lowering', low: 'Low IR', roots: 'Root placement', code: 'Code generation' };

function drawSteps() {
  const f = D.funcs[S.func];
  const list = $('.list.steps');
  const most = Math.max(1, ...f.steps.map(step => step[3]));
  const total = f.steps.reduce((sum, step) => sum + step[3], 0);
  let phase = '';
  const nodes = [];
  const first = f.stages[0]?.[1];
  const read = h('div.item', { onclick: () => openStage(0) }, h('span.label', {}, 'as read'), h('span.n', {}, plural(rowCount(f, 0), 'row')));
  read.classList.toggle('on', S.stage === 0);
  nodes.push(read);
  for (const [label, kind, at, time, , before, after] of f.steps) {
    const isIdle = at < 0 && kind !== 'code';
    if (isIdle && !S.allSteps) continue;
    if (kind !== phase) nodes.push(h('div.phase', {}, PHASES[phase = kind]));
    const grown = after - before;
    const node = h('div.item', isIdle || at < 0 ? { title: 'changed nothing' } : { onclick: () => openStage(at) },
      h('span.label', {}, label),
      grown ? h(`span.n.${grown > 0 ? 'up' : 'down'}`, { title: `${before} to ${after} rows` }, (grown > 0 ? '+' : '−') + Math.abs(grown)) : null,
      h('span.n.time', {}, duration(time)),
      h('span.share', { style: `width:${(100 * time / most).toFixed(1)}%` }));
    node.classList.toggle('idle', isIdle);
    node.classList.toggle('on', at >= 0 && at === S.stage);
    if (kind === 'code') node.title = 'translation and code generation together';
    nodes.push(node);
  }
  list.replaceChildren(...nodes);
  $('.item.on', list)?.scrollIntoView({ block: 'nearest' });
  $('#allsteps').textContent = S.allSteps ? 'only changes' : `all ${f.steps.length}`;
  const step = f.steps.find(step => step[2] === S.stage);
  const detail = $('.detail');
  if (!step) {
    detail.innerHTML = `<b>as read</b><br>${duration(total)} in ${plural(f.steps.length, 'step')}`;
  } else {
    const [label, kind, , time, rewrites, before, after, counters] = step;
    const rows = before !== undefined ? `${number(before)} → ${number(after)} rows · ${plural(rewrites, 'rewrite')} · ` : '';
    detail.innerHTML = `<b>${esc(label)}</b> <span>${PHASES[kind]}</span><br>${rows}${duration(time)} of ${duration(total)}${counters ? '<br>' + esc(counters) : ''}`;
  }
}

const rowCount = (f, n) => f.stages.length ? stage(f, n).rows.length : 0;

/** The next or previous stage that something changed. */
function stepStage(by) {
  const n = S.stage + by;
  if (n >= 0 && n < D.funcs[S.func].stages.length) openStage(n);
}

// ---- search --------------------------------------------------------------------------------------------------------------------

function setQuery(text) {
  S.query = text.trim();
  const input = $('.search input');
  if (input.value.trim() !== S.query) input.value = text;
  let found = 0;
  const query = S.query.toLowerCase();
  for (const pane of S.panes) {
    if (query) for (const row of pane.view?.rows ?? []) found += row.text.toLowerCase().includes(query);
    pane.draw(true);
    pane.rule();
  }
  $('.search span').textContent = query ? plural(found, 'row') : '/';
}

/** Selects the next row of the focused pane, or of the first that has one, in which the searched text stands. */
function nextHit(by) {
  if (!S.query) return;
  const query = S.query.toLowerCase();
  const order = [S.panes[S.focus], ...S.panes];
  for (const pane of order) {
    const rows = pane.view?.rows ?? [];
    const hits = rows.flatMap((row, i) => row.text.toLowerCase().includes(query) ? [i] : []);
    if (!hits.length) continue;
    const next = by > 0 ? hits.find(i => i > pane.row) ?? hits[0] : hits.findLast(i => i < pane.row) ?? hits.at(-1);
    focusPane(S.panes.indexOf(pane));
    return selectRow(pane, next);
  }
}

// ---- keys, theme, address --------------------------------------------------------------------------------------------------------------

const KEYS = [
  ['↑ ↓  k j', 'row above, below', pane => pane],
  ['← →', 'pane to the left, right'], ['Page Home End', 'far in a pane'],
  ['[ ]', 'previous, next pass that changed something'], ['{ }', 'previous, next function'],
  ['/', 'search; Enter, n, N for the next hit'], ['Esc', 'clear selection and search'],
  ['d', 'show what the pass removed, or not'], ['c', 'colour rows by line of the source'],
  ['g', 'next picture'], ['+ − 0', 'zoom of the picture'], ['t', 'dark or light'], ['?', 'this list'],
];

function moveRow(by) {
  const pane = S.panes[S.focus];
  if (!pane?.view?.rows.length) return;
  const last = pane.view.rows.length - 1;
  const from = pane.row < 0 ? Math.floor(pane.scroll.scrollTop / ROW) - 1 : pane.row;
  selectRow(pane, Math.min(last, Math.max(0, from + by)));
}

function onKey(event) {
  const isTyping = /INPUT|SELECT/.test(event.target.tagName);
  if (event.key === 'Escape') {
    if (event.target.blur) event.target.blur();
    return clearSelection();
  }
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || $('dialog')?.open) return;
  const page = Math.floor((S.panes[S.focus]?.height ?? 400) / ROW) - 2;
  const picture = S.panes[S.focus]?.view?.picture ? S.panes[S.focus] : S.panes.find(pane => pane.view?.picture);
  const actions = {
    ArrowDown: () => moveRow(1), j: () => moveRow(1), ArrowUp: () => moveRow(-1), k: () => moveRow(-1),
    PageDown: () => moveRow(page), PageUp: () => moveRow(-page), Home: () => moveRow(-1e9), End: () => moveRow(1e9),
    ArrowLeft: () => focusPane(Math.max(0, S.focus - 1)), ArrowRight: () => focusPane(Math.min(S.panes.length - 1, S.focus + 1)),
    '[': () => stepStage(-1), ']': () => stepStage(1),
    '{': () => openFunction(Math.max(0, S.func - 1)), '}': () => openFunction(Math.min(D.funcs.length - 1, S.func + 1)),
    '/': () => $('.search input').select(), n: () => nextHit(1), N: () => nextHit(-1),
    d: () => { S.ghosts = !S.ghosts; for (const pane of S.panes) { pane.row = -1; pane.refresh(); } },
    c: () => { S.tint = !S.tint; for (const pane of S.panes) pane.draw(true); },
    g: () => picture?.show(PICTURES[(PICTURES.indexOf(picture.kind) + 1) % PICTURES.length]),
    '+': () => picture?.zoom(1.3), '=': () => picture?.zoom(1.3), '-': () => picture?.zoom(1 / 1.3), 0: () => picture?.fit(),
    t: () => setTheme(S.theme === 'dark' ? 'light' : 'dark'), '?': () => $('dialog').showModal(),
  };
  const action = actions[event.key];
  if (action) { event.preventDefault(); action(); }
}

function setTheme(theme) {
  S.theme = theme;
  document.documentElement.dataset.theme = theme;
  // A page from a file may have no storage.
  try { localStorage.setItem('brolga-theme', theme); } catch { /* the theme is not kept */ }
  readColours();
  for (const pane of S.panes) pane.rule();
}

/** The address names function, stage and panes, so that it can be passed on. */
function setHash() {
  const panes = S.panes.map((pane, i) => (!i ? '' : pane.column === S.panes[i - 1].column ? '.' : ',') + pane.kind).join('');
  try { history.replaceState(null, '', `#f=${S.func}&s=${S.stage}&v=${panes}`); } catch { /* not from every place */ }
}

// ---- start --------------------------------------------------------------------------------------------------------------------------------

function start() {
  const asked = new URLSearchParams(location.hash.slice(1));
  let stored = null;
  try { stored = localStorage.getItem('brolga-theme'); } catch { /* none is kept */ }
  const theme = asked.get('t') ?? stored ?? (matchMedia('(prefers-color-scheme: light)').matches ? 'light' : 'dark');
  const within = (text, end, otherwise) => text !== null && +text >= 0 && +text < end ? +text : otherwise;
  const known = KINDS.flatMap(group => group[1].map(([id]) => id));
  // Columns are between commas, the panes of a column between points.
  const read = text => text.split(',').map(column => column.split('.').filter(kind => known.includes(kind))).filter(column => column.length);
  const wanted = read(asked.get('v') ?? '');

  const input = h('input', { placeholder: 'Search all panes', spellcheck: false, oninput: () => setQuery(input.value) });
  input.addEventListener('keydown', event => { if (event.key === 'Enter') { event.preventDefault(); nextHit(event.shiftKey ? -1 : 1); } });
  const filter = h('input', { id: 'funcfilter', placeholder: `filter ${D.funcs.length}`, spellcheck: false, oninput: drawFunctions });
  const header = h('header', {},
    h('span.mark', { innerHTML: '<i>◆</i> brolga' }), h('span.file', { title: D.source.name }, D.source.name),
    h('span.badge', { title: 'Level of optimisation' }, `O${D.level}`),
    D.run ? h('span.badge.run', { title: `${D.run.call} = ${D.run.outcome}; counted by the interpreter` }, `${D.run.call} = ${D.run.outcome}`) : null,
    h('span.space'), h('label.search', {}, '⌕', input, h('span', {}, '/')),
    h('button', { title: 'Dark or light (t)', onclick: () => setTheme(S.theme === 'dark' ? 'light' : 'dark') }, '◐'),
    h('button', { title: 'Keys (?)', onclick: () => $('dialog').showModal() }, '?'));
  const aside = h('aside', {},
    h('h2', {}, 'Functions', filter), h('div.list.funcs'),
    h('h2', {}, 'Passes', h('span.space'), h('button', { id: 'allsteps', title: 'Also the steps that changed nothing', onclick: () => { S.allSteps = !S.allSteps; drawSteps(); } })),
    h('div.list.steps'), h('div.detail'));
  const side = h('div.grip');
  side.onpointerdown = event => {
    side.setPointerCapture(event.pointerId);
    side.onpointermove = event => { aside.style.width = Math.min(600, Math.max(120, event.clientX)) + 'px'; };
    side.onpointerup = () => { side.onpointermove = null; };
  };
  const keys = h('dialog', { onclick: event => { if (event.target === keys) keys.close(); } }, h('h3', {}, 'Keys'),
    h('table', { innerHTML: KEYS.map(([key, text]) => `<tr><td>${key.split(' ').filter(Boolean).map(k => `<kbd>${k}</kbd>`).join(' ')}</td><td>${text}</td></tr>`).join('') }),
    h('p', { innerHTML: 'Hold Ctrl and click a value or block to go to where it is made. The bar beside a selected row marks where its value is needed. Pictures show the selected pass; drag to move, wheel to zoom.' }));
  document.body.append(header, h('main', {}, aside, side, h('div', { id: 'panes' })), h('footer'), keys);

  // The function that a reader looks for first: the one that was asked for, else the largest.
  const largest = D.funcs.reduce((best, f, i) => (f.size ?? 0) > (D.funcs[best].size ?? 0) ? i : best, 0);
  S.func = within(asked.get('f'), D.funcs.length, largest);
  const f = D.funcs[S.func];
  const columns = wanted.length ? wanted : read(`${D.own ? 'own,' : ''}source,pass,cfg.asm`);
  S.panes = columns.flatMap(kinds => {
    const column = { weight: { source: .9, pass: 1.1 }[kinds[0]] ?? 1 };
    return kinds.map(kind => Object.assign(new Pane(kind), { column }));
  });
  setTheme(theme);
  if (!f) {
    $('#panes').append(h('div.empty', { innerHTML: 'The program has no functions.' }));
    return;
  }
  S.stage = within(asked.get('s'), f.stages.length, defaultStage(f));
  layoutPanes();
  focusPane(0);
  openFunction(S.func);
  S.stage = within(asked.get('s'), f.stages.length, defaultStage(f));
  openStage(S.stage, true);
  const origin = within(asked.get('o'), D.lines.length + 1, 0);
  if (origin) { S.origins = new Set([origin]); drawSelection(null); }
  addEventListener('keydown', onKey);
}

/** The data of the page: JSON, compressed by zlib, in base 64. */
async function unpacked() {
  const packed = Uint8Array.from(atob($('#data').textContent), c => c.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'))).json();
}

unpacked().then(data => { setData(data); start(); });
