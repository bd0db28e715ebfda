// Pictures of functions and of the program: control flow, dominators, loops, calls. They use the state and the data of `page.js`.
'use strict';

const CHAR = 5.75, NODE_ROWS = 9, NODE_CHARS = 46;

/** The blocks of a stage as nodes, with their first rows if there is room for them. */
function blockNodes(f, st, withRows) {
  const ns = numbers(f, st);
  return st.blocks.map((block, i) => {
    const rows = st.rows.slice(block.first, block.first + block.rows);
    const origins = new Set(rows.map(row => row[2]).filter(Boolean));
    const count = block.count;
    const shown = withRows ? rows.slice(0, rows.length > NODE_ROWS ? NODE_ROWS - 1 : NODE_ROWS) : [];
    const lines = shown.map(([inst, string]) => {
      const text = (ns.users.has(inst) ? `%${ns.rows.get(inst)} = ` : '') + D.strings[string].replace(/%(\d+)|§(\d+)/g, (all, v, b) => v ? '%' + (ns.rows.get(+v) ?? 0) : '#' + (ns.blocks.get(+b) ?? '?')).replace(/\b(intrinsic|builtin|invoke|dynamic) +(Base|Core|Main)\./g, '');
      return text.length > NODE_CHARS ? text.slice(0, NODE_CHARS - 1) + '…' : text;
    });
    if (rows.length > shown.length && withRows) lines.push(`… ${rows.length - shown.length} more rows`);
    const sub = `${plural(rows.length, 'row')}${D.counts ? ` · ${short(count)}×` : ''}${block.cold ? ' · cold' : ''}`;
    const title = `#${i + 1}`;
    const widest = Math.max(title.length + sub.length + 3, ...lines.map(line => line.length));
    return { title, sub, lines, origins, count, depth: block.depth, cold: block.cold, block, w: widest * CHAR + 22, h: 21 + lines.length * 12.5 + (lines.length ? 5 : 0) };
  });
}

/** What a picture is made of: nodes, edges and what its colours mean. */
function graphOf(kind, f) {
  if (kind === 'calls') {
    const nodes = D.funcs.map((g, i) => {
      const sub = [g.size ? `${short(g.size)} B` : '', D.run?.entries[i] ? `${short(D.run.entries[i])}×` : ''].filter(Boolean).join(' · ');
      const title = g.symbol.length > 44 ? g.symbol.slice(0, 43) + '…' : g.symbol;
      return { title, sub, lines: [], count: D.run?.entries[i] ?? 0, func: i, on: i === S.func, depth: 0, w: (title.length * 1.12 + sub.length + 3) * CHAR + 22, h: 22 };
    });
    return { nodes, edges: D.funcs.flatMap((g, from) => g.calls.map(to => ({ from, to }))) };
  }
  const at = Math.min(S.stage, f.stages.length - 1);
  if (at < 0) return { nodes: [], edges: [] };
  const st = stage(f, at);
  if (kind === 'dom') {
    const nodes = blockNodes(f, st, false);
    return { nodes, edges: st.blocks.flatMap((block, to) => block.idom >= 0 ? [{ from: block.idom, to }] : []) };
  }
  const nodes = blockNodes(f, st, st.rows.length <= 900);
  const edges = st.blocks.flatMap((block, from) => block.succs.flatMap((to, k) => to < 0 ? [] :
    [{ from, to, way: block.succs.length === 2 ? (k ? 'no' : 'yes') : '' }]));
  return { nodes, edges };
}

const nodeSvg = node => {
  const x = node.x - node.w / 2;
  const classes = ['node', node.cold && 'cold', node.on && 'lit'].filter(Boolean).join(' ');
  const shade = node.depth ? `<rect class="shade" x="${x}" y="${node.y}" width="${node.w}" height="${node.h}" style="fill:var(--loop${Math.min(4, node.depth)})"/>` : '';
  const hot = node.count && D.counts ? `<rect class="shade" x="${x}" y="${node.y}" width="5" height="${node.h}" style="fill:${heatColour(node.count)}"/><rect class="shade" x="${x}" y="${node.y}" width="${node.w}" height="${node.h}" style="fill:${heatColour(node.count, .16)}"/>` : '';
  const lines = node.lines.map((line, k) => `<text class="body" x="${x + 10}" y="${node.y + 31 + k * 12.5}">${esc(line)}</text>`).join('');
  return `<g class="${classes}" data-n="${node.n}"><rect class="box" x="${x}" y="${node.y}" width="${node.w}" height="${node.h}"/>${shade}${hot}` +
    `<text class="title" x="${x + 10}" y="${node.y + 15}">${esc(node.title)}</text><text class="sub" text-anchor="end" x="${x + node.w - 8}" y="${node.y + 15}">${esc(node.sub)}</text>${lines}</g>`;
};

function drawPicture(pane) {
  const kind = pane.view.picture, f = D.funcs[S.func];
  const box = h('div.picture', { tabIndex: 0 });
  pane.body.append(box);
  const st = kind === 'calls' ? null : stage(f, Math.min(S.stage, f.stages.length - 1));
  pane.info.textContent = st ? `${st.label} · ${plural(st.blocks.length, 'block')}` : plural(D.funcs.length, 'function');
  const nest = kind === 'loops' ? loopNest(f, st) : null;
  const { nodes, edges } = nest ?? graphOf(kind, f);
  nodes.forEach((node, n) => { node.n = n; });
  const size = nest ?? layered(nodes, edges);
  const markers = ['', 'yes', 'no', 'back'].map(way => `<marker id="m${way}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0,0.5L8,4L0,7.5z" style="fill:var(--${{ '': 'edge', yes: 'yes', no: 'no', back: 'accent' }[way]})"/></marker>`).join('');
  const drawn = edges.map(edge => {
    const way = edge.back ? 'back' : edge.way ?? '';
    return `<path class="edge ${way}" marker-end="url(#m${way})" d="${curve(edge.points)}"/>`;
  }).join('');
  box.innerHTML = `<svg><defs>${markers}</defs><g class="world">${nest?.under ?? ''}${drawn}${nodes.map(nodeSvg).join('')}</g></svg>`;
  const legend = kind === 'cfg' ? [['yes', 'next or taken'], ['no', 'otherwise'], ['accent', 'back'], ['loop4', 'in a loop']] : [];
  if (D.counts) legend.push(['heat', 'executed often']);
  if (legend.length) box.append(h('div.legend', { innerHTML: legend.map(([colour, text]) => `<span><i style="background:${colour === 'heat' ? 'hsl(var(--hot))' : `var(--${colour})`}"></i>${text}</span>`).join('') }));
  pane.nodes = nodes;
  movable(pane, box, size);
  box.addEventListener('click', event => {
    const node = nodes[event.target.closest('.node')?.dataset.n];
    if (!node || pane.moved) return;
    if (node.func !== undefined) return openFunction(node.func);
    S.origins = new Set(node.origins);
    live = null;
    for (const other of S.panes) {
      other.row = -1;
      if (other.view?.stage !== st) continue;
      const i = other.view.rows.findIndex(row => row.block === node.block && !row.ghost);
      if (i >= 0) { other.row = i; other.bring(i); }
    }
    drawSelection(S.panes.find(other => other.view?.stage === st));
  });
  litNodes(pane);
}

/** Loops as boxes in boxes: each with the blocks that are in no inner one. */
function loopNest(f, st) {
  const nodes = blockNodes(f, st, false);
  const root = { loops: [], nodes: [], depth: 0 }, byHead = new Map();
  const loopAt = head => {
    if (head < 0) return root;
    let loop = byHead.get(head);
    if (!loop) {
      loop = { head, loops: [], nodes: [], depth: st.blocks[head].depth };
      byHead.set(head, loop);
      // The loop around it is that of the nearest block above its head that is in fewer loops.
      let up = st.blocks[head].idom;
      while (up >= 0 && st.blocks[up].depth >= loop.depth) up = st.blocks[up].idom;
      loopAt(up >= 0 ? st.blocks[up].head : -1).loops.push(loop);
    }
    return loop;
  };
  nodes.forEach((node, i) => loopAt(st.blocks[i].head).nodes.push(node));
  let under = '';
  /** Places what is in a loop below each other; gives its size. */
  const put = (loop, x, y) => {
    const parts = [...loop.nodes.map(node => ({ at: node.block.at, node })), ...loop.loops.map(loop => ({ at: loop.head, loop }))].sort((a, b) => a.at - b.at);
    let width = 150, top = y + (loop === root ? 0 : 26), line = x + 12, tall = 0;
    const boxes = [];
    for (const part of parts) {
      if (part.node) {
        if (line > x + 12 && line + part.node.w > x + 560) { top += tall + 8; line = x + 12; tall = 0; }
        Object.assign(part.node, { x: line + part.node.w / 2, y: top });
        line += part.node.w + 8;
        tall = Math.max(tall, part.node.h);
        width = Math.max(width, line - x + 4);
      } else {
        if (tall) { top += tall + 10; line = x + 12; tall = 0; }
        const size = put(part.loop, x + 12, top);
        boxes.push(size.svg);
        top += size.height + 10;
        width = Math.max(width, size.width + 24);
      }
    }
    if (tall) top += tall + 10;
    const height = top - y + (loop === root ? 0 : 2);
    const svg = loop === root ? boxes.join('') :
      `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="8" style="fill:var(--loop1);stroke:var(--accent);stroke-opacity:.45"/><text x="${x + 12}" y="${y + 17}" style="font:600 11px var(--sans);fill:var(--dim)">loop at #${loop.head + 1} · depth ${loop.depth}</text>${boxes.join('')}`;
    return { width, height, svg };
  };
  const size = put(root, 0, 0);
  under = size.svg;
  for (const node of nodes) node.depth = 0;
  return { nodes, edges: [], under, width: size.width, height: size.height };
}

/** Marks the nodes whose rows are lit. */
function litNodes(pane) {
  const nodes = pane.nodes ?? [];
  // The nodes of a picture stay until another one is drawn.
  if (pane.elements?.nodes !== nodes) {
    const byNumber = new Map([...pane.body.querySelectorAll('[data-n]')].map(element => [element.dataset.n, element]));
    pane.elements = { nodes, byNumber };
  }
  const origins = [...S.origins];
  for (const node of nodes) {
    const isLit = node.func !== undefined ? node.func === S.func : origins.some(o => node.origins.has(o));
    pane.elements.byNumber.get(String(node.n))?.classList.toggle('lit', isLit);
  }
}

/** Lets a picture be dragged and zoomed. */
function movable(pane, box, size) {
  const world = $('.world', box);
  let [x, y, k] = [0, 0, 1];
  const apply = () => world.setAttribute('transform', `translate(${x.toFixed(1)},${y.toFixed(1)}) scale(${k.toFixed(4)})`);
  const zoom = (by, cx = box.clientWidth / 2, cy = box.clientHeight / 2) => {
    const next = Math.min(4, Math.max(.04, k * by));
    x = cx - (cx - x) * next / k;
    y = cy - (cy - y) * next / k;
    k = next;
    apply();
  };
  const fit = () => {
    const [w, t] = [box.clientWidth, box.clientHeight];
    k = Math.min(1.25, (w - 36) / size.width, (t - 70) / size.height);
    // A tall picture begins at its top, in a size that can be read.
    k = Math.max(k, Math.min(.62, (w - 36) / Math.min(size.width, 900)));
    x = Math.max(18, (w - size.width * k) / 2);
    if (size.width * k > w) x = w / 2 - (pane.nodes[0]?.x ?? 0) * k;
    y = 20;
    apply();
  };
  pane.zoom = zoom;
  pane.fit = fit;
  box.onwheel = event => {
    event.preventDefault();
    const rect = box.getBoundingClientRect();
    if (event.shiftKey) { x -= event.deltaY; return apply(); }
    zoom(Math.exp(-event.deltaY * (event.deltaMode ? .05 : .0016)), event.clientX - rect.left, event.clientY - rect.top);
  };
  box.onpointerdown = event => {
    if (event.target.closest('.zoom')) return;
    const from = [event.clientX - x, event.clientY - y], start = [event.clientX, event.clientY];
    pane.moved = false;
    const move = event => {
      if (Math.hypot(event.clientX - start[0], event.clientY - start[1]) > 4) { pane.moved = true; box.classList.add('drag'); }
      if (pane.moved) { x = event.clientX - from[0]; y = event.clientY - from[1]; apply(); }
    };
    const up = () => { removeEventListener('pointermove', move); removeEventListener('pointerup', up); box.classList.remove('drag'); };
    addEventListener('pointermove', move);
    addEventListener('pointerup', up);
  };
  box.append(h('div.zoom', {},
    h('button', { title: 'Smaller (−)', onclick: () => zoom(1 / 1.3) }, '−'),
    h('button', { title: 'Fit (0)', onclick: fit }, 'fit'),
    h('button', { title: 'Larger (+)', onclick: () => zoom(1.3) }, '+')));
  fit();
  if (!box.clientWidth) requestAnimationFrame(fit);
}
