// Layered layout of directed graphs, after Sugiyama: what `pictures.js` draws. It knows nothing of the page.
'use strict';

/** Lays out a directed graph in layers.
 *
 *  nodes: { w, h }, edges: [from, to, …]. Sets x, y (centre, top) of nodes, and `points` of edges.
 *
 *  1 edges that close a cycle are turned round, found by a depth-first walk from the first node
 *  2 a node's layer is its longest way from above; long edges get a dummy in each layer between
 *  3 orders within layers: sweeps down and up by the mean place of neighbours; the order with the fewest crossings is kept
 *  4 places: each node goes towards the median of its neighbours as far as its layer has room
 */
function layered(nodes, edges, gapX = 26, gapY = 42) {
  const n = nodes.length, succ = nodes.map(() => []), state = new Uint8Array(n);
  edges.forEach((edge, i) => { edge.back = false; succ[edge.from].push(i); });
  for (let root = 0; root < n; root++) {
    if (state[root]) continue;
    const stack = [[root, 0]];
    state[root] = 1;
    while (stack.length) {
      const top = stack.at(-1), list = succ[top[0]];
      if (top[1] === list.length) { state[top[0]] = 2; stack.pop(); continue; }
      const edge = edges[list[top[1]++]];
      if (state[edge.to] === 1) edge.back = true;
      else if (!state[edge.to]) { state[edge.to] = 1; stack.push([edge.to, 0]); }
    }
  }
  const ends = edge => edge.back ? [edge.to, edge.from] : [edge.from, edge.to];
  const layer = new Int32Array(n), inDegree = new Int32Array(n), down = nodes.map(() => []);
  for (const edge of edges) {
    const [a, b] = ends(edge);
    if (a !== b) { down[a].push(b); inDegree[b]++; }
  }
  const queue = [];
  for (let i = 0; i < n; i++) if (!inDegree[i]) queue.push(i);
  for (let k = 0; k < queue.length; k++) for (const b of down[queue[k]]) {
    layer[b] = Math.max(layer[b], layer[queue[k]] + 1);
    if (!--inDegree[b]) queue.push(b);
  }
  // All nodes with the dummies of long edges; an edge is the chain of them from above to below.
  const all = nodes.map((node, i) => ({ node, w: node.w, h: node.h, layer: layer[i], up: [], down: [] }));
  for (const edge of edges) {
    const [a, b] = ends(edge);
    edge.chain = [a];
    if (a === b) continue;
    for (let l = layer[a] + 1; l < layer[b]; l++) {
      edge.chain.push(all.length);
      all.push({ w: edge.back ? 10 : 4, h: 0, layer: l, up: [], down: [] });
    }
    edge.chain.push(b);
    for (let k = 1; k < edge.chain.length; k++) {
      all[edge.chain[k - 1]].down.push(edge.chain[k]);
      all[edge.chain[k]].up.push(edge.chain[k - 1]);
    }
  }
  const layers = [];
  all.forEach((node, i) => (layers[node.layer] ??= []).push(i));
  const place = list => list.forEach((i, at) => { all[i].at = at; });
  layers.forEach(place);
  const crossings = () => {
    let sum = 0;
    for (const list of layers) {
      const seen = [];
      for (const i of list) {
        const to = all[i].down.map(j => all[j].at).sort((a, b) => a - b);
        for (const at of to) for (let k = seen.length - 1; k >= 0 && seen[k] > at; k--) sum++;
        for (const at of to) { let k = seen.length; while (k > 0 && seen[k - 1] > at) k--; seen.splice(k, 0, at); }
      }
      if (sum > 1e6) return sum;
    }
    return sum;
  };
  let best = layers.map(list => [...list]), fewest = crossings();
  for (let sweep = 0; sweep < 10 && fewest; sweep++) {
    const isDown = sweep % 2 === 0;
    for (const list of isDown ? layers : [...layers].reverse()) {
      const mean = i => {
        const near = isDown ? all[i].up : all[i].down;
        return near.length ? near.reduce((sum, j) => sum + all[j].at, 0) / near.length : all[i].at;
      };
      const key = new Map(list.map(i => [i, mean(i)]));
      list.sort((a, b) => key.get(a) - key.get(b) || all[a].at - all[b].at);
      place(list);
    }
    const now = crossings();
    if (now < fewest) { fewest = now; best = layers.map(list => [...list]); }
  }
  best.forEach((list, l) => { layers[l] = list; place(list); });
  // Places: first side by side, then towards the medians, left to right and right to left with the order kept.
  let y = 0;
  for (const list of layers) {
    let x = 0, tall = 0;
    for (const i of list) {
      all[i].x = x + all[i].w / 2;
      x += all[i].w + gapX;
      tall = Math.max(tall, all[i].h);
    }
    for (const i of list) { all[i].y = y; all[i].tall = tall; }
    y += tall + gapY;
  }
  for (let round = 0; round < 12; round++) {
    for (const list of round % 2 ? [...layers].reverse() : layers) {
      const wanted = list.map(i => {
        const near = round % 2 ? all[i].down : all[i].up;
        if (!near.length) return all[i].x;
        const xs = near.map(j => all[j].x).sort((a, b) => a - b);
        return (xs[(xs.length - 1) >> 1] + xs[xs.length >> 1]) / 2;
      });
      // The least squares that keep the order: neighbours that would overlap move together.
      const groups = [];
      list.forEach((i, k) => {
        let offset = 0;
        groups.push({ items: [[i, 0]], wanted: wanted[k], width: 0 });
        for (;;) {
          const b = groups.at(-1), a = groups.at(-2);
          if (!a) break;
          const last = a.items.at(-1), head = b.items[0];
          const apart = (all[last[0]].w + all[head[0]].w) / 2 + gapX;
          if (b.wanted - (a.wanted + last[1]) >= apart) break;
          offset = last[1] + apart;
          const sum = a.wanted * a.items.length + (b.wanted - offset) * b.items.length;
          for (const [j, by] of b.items) a.items.push([j, by + offset]);
          a.wanted = sum / a.items.length;
          groups.pop();
        }
      });
      for (const group of groups) for (const [i, by] of group.items) all[i].x = group.wanted + by;
    }
  }
  const left = Math.min(0, ...all.map(node => node.x - node.w / 2));
  for (const node of all) node.x -= left;
  all.forEach(node => { if (node.node) Object.assign(node.node, { x: node.x, y: node.y }); });
  for (const edge of edges) edge.points = route(edge, all);
  return { width: Math.max(1, ...all.map(node => node.x + node.w / 2)), height: Math.max(1, y - gapY) };
}

/** The points of an edge from above to below, or round the side of a node that leads to itself. */
function route(edge, all) {
  const chain = edge.chain.map(i => all[i]);
  const [a, b] = [chain[0], chain.at(-1)];
  if (chain.length === 1) {
    const x = a.x + a.w / 2;
    return [[x - 14, a.y + a.h], [x - 14, a.y + a.h + 14], [x + 14, a.y + a.h + 14], [x + 14, a.y - 14], [x - 14, a.y - 14], [x - 14, a.y]];
  }
  const spread = (node, other, list) => {
    const at = list.indexOf(other);
    return list.length > 1 ? node.x + (at - (list.length - 1) / 2) * Math.min(14, node.w / (list.length + 1)) : node.x;
  };
  const sorted = (list) => [...list].sort((i, j) => all[i].x - all[j].x);
  const points = [[spread(a, edge.chain[1], sorted(a.down)), a.y + a.h]];
  for (const node of chain.slice(1, -1)) points.push([node.x, node.y], [node.x, node.y + node.tall]);
  points.push([spread(b, edge.chain.at(-2), sorted(b.up)), b.y]);
  return edge.back ? points.reverse() : points;
}

/** A smooth line through points that goes up and down at its ends. */
function curve(points) {
  let path = `M${points[0].map(v => v.toFixed(1))}`;
  for (let k = 1; k < points.length; k++) {
    const [x0, y0] = points[k - 1], [x1, y1] = points[k];
    if (Math.abs(x0 - x1) < .5 || y0 === y1) { path += `L${x1.toFixed(1)},${y1.toFixed(1)}`; continue; }
    const half = (y1 - y0) * .5;
    path += `C${x0.toFixed(1)},${(y0 + half).toFixed(1)} ${x1.toFixed(1)},${(y1 - half).toFixed(1)} ${x1.toFixed(1)},${y1.toFixed(1)}`;
  }
  return path;
}
