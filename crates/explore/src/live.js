// Where values are needed: from their definitions to their last uses, by the blocks of a stage.
'use strict';

/** The rows of a stage in which the value of an instruction is still needed, by index: backwards from each use to the definition. */
function liveIndices(f, st, inst) {
  const ns = numbers(f, st), found = new Set(), at = ns.at.get(inst), block = ns.blockOf[at];
  st.preds ??= predecessors(st);
  const done = new Set(), work = [];
  /** Marks the rows of a block above `end`, down to the definition or the block's head. */
  const mark = (b, end) => {
    const from = b === block && end > at ? at : b.first;
    for (let i = from; i < end; i++) found.add(i);
    if (!(b === block && end > at) && !done.has(b.at)) { done.add(b.at); work.push(...st.preds[b.at]); }
  };
  for (const i of ns.users.get(inst) ?? []) {
    const b = ns.blockOf[i], text = D.strings[st.rows[i][1]];
    if (!text.startsWith('φ (')) { mark(b, i + 1); continue; }
    // A φ needs its operand at the end of the block that it comes from.
    for (const m of text.matchAll(/§(\d+) => %(\d+)/g)) {
      const from = st.blocks[(ns.blocks.get(+m[1]) ?? 0) - 1];
      if (+m[2] === inst && from) mark(from, from.first + from.rows);
    }
  }
  while (work.length) {
    const b = st.blocks[work.pop()];
    if (b !== block) mark(b, b.first + b.rows);
    else for (let i = at; i < b.first + b.rows; i++) found.add(i);
  }
  return found;
}

function predecessors(st) {
  const preds = st.blocks.map(() => []);
  for (const b of st.blocks) for (const succ of b.succs) if (succ >= 0) preds[succ].push(b.at);
  return preds;
}

/** The rows of a view in which the value of a row is still needed. */
function liveRows(view, defined) {
  const found = liveIndices(view.f, view.stage, defined.inst), shown = new Set();
  if (found.size) view.rows.forEach((row, i) => { if (row.inst && !row.ghost && found.has(row.index)) shown.add(i); });
  return shown;
}

/** More rows of ranges than this are not drawn. */
const MOST_MARKS = 2e6;

/** The stage with a lane for each value that is needed: `●` where it is made, `│` while it is needed. A lane is taken again once its value is not. */
function liveView(f, at) {
  const view = irView(f, at), st = view.stage, ns = numbers(f, st);
  const ranges = [];
  let marks = 0;
  for (const [inst, index] of ns.at) {
    if (!ns.users.has(inst)) continue;
    const rows = liveIndices(f, st, inst);
    if ((marks += rows.size) > MOST_MARKS) return { empty: 'The ranges of this function are too long to be drawn.' };
    let [first, last] = [index, index];
    for (const i of rows) { first = Math.min(first, i); last = Math.max(last, i); }
    ranges.push({ inst, index, rows, first, last });
  }
  ranges.sort((a, b) => a.first - b.first);
  const ends = [], lanes = st.rows.map(() => []), counts = st.rows.map(() => 0);
  for (const { index, rows, first, last } of ranges) {
    let lane = ends.findIndex(end => end < first);
    if (lane < 0) lane = ends.length;
    ends[lane] = last;
    for (const i of rows) { lanes[i][lane] = '│'; counts[i]++; }
    lanes[index][lane] = '●';
  }
  const width = ends.length, most = counts.reduce((a, b) => Math.max(a, b), 0);
  const rows = view.rows.filter(row => !row.ghost).map(row => {
    if (row.index === undefined) return row;
    const text = Array.from({ length: width }, (_, lane) => lanes[row.index][lane] ?? ' ').join('');
    const marked = esc(text).replace(/●/g, '<span class="k">●</span>');
    const count = `<span class="no" style="width:5ch" title="values that are needed here">${counts[row.index] || ''}</span>`;
    return { ...row, change: '', text: row.text + ' '.repeat(width + 5), body: () => `${count}<span class="lanes">${marked}</span> ${row.body()}` };
  });
  return { rows, stage: st, f, depthMax: view.depthMax, info: `${summary(f, at)} · at most ${plural(most, 'value')} at once` };
}
