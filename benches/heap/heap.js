// The programs of `benches/heap/main.rs`, for node: trees, list, table, throw.
//
// node --max-old-space-size=64 --trace-gc benches/heap/heap.js trees 18
//
// Prints: `result`, nanoseconds of processor time for each allocation and milliseconds in all, of the second of two runs in one process;
// for `throw`, nanoseconds for each throw from 1, 2, 4 and 10 frames below its handler.
'use strict';

class Pair {
  constructor(a, b) {
    this.a = a;
    this.b = b;
  }
}

function build(depth) {
  if (depth === 0) return new Pair(null, null);
  const a = build(depth - 1);
  return new Pair(a, build(depth - 1));
}

function count(tree) {
  return tree.a === null ? 1 : 1 + count(tree.a) + count(tree.b);
}

function trees(most) {
  const kept = build(most);
  let nodes = 0;
  for (let depth = 4; depth <= most; depth += 2)
    for (let round = 0; round < 1 << (most - depth + 4); round++) nodes += count(build(depth));
  return nodes + count(kept);
}

function list(rounds) {
  let head = new Pair(null, null), tail = head;
  for (let step = 0; step < rounds; step++) {
    const next = new Pair(null, null);
    tail.a = next;
    tail = next;
    if (step >= 100000) head = head.a;
  }
  return rounds + 1;
}

function table(rounds) {
  const slots = new Array(1 << 18).fill(null);
  let state = 1;
  for (let round = 0; round < rounds; round++) {
    // 32 bits of the same family: node has no fast 64-bit integers.
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    slots[state & ((1 << 18) - 1)] = new Pair(null, null);
  }
  return rounds;
}

const THROWN = new Error();

function up(n, frames) {
  if (frames > 0) return up(n, frames - 1) + 1;
  if (n % 2 === 0) throw THROWN;
  return n;
}

function guarded(rounds, frames) {
  let sum = 0;
  for (let n = 0; n < rounds; n++) {
    try {
      sum += up(2 * n, frames);
    } catch (e) {
      sum += 1;
    }
  }
  return sum;
}

// Microseconds of processor time.
function used(run) {
  const began = process.cpuUsage();
  run();
  const time = process.cpuUsage(began);
  return time.user + time.system;
}

const [program, size] = process.argv.slice(2);
if (program === 'throw') {
  const rounds = 300000;
  guarded(rounds, 0);
  const each = [0, 1, 3, 9].map((frames) => (used(() => guarded(rounds, frames)) * 1000) / rounds);
  console.log(`result ${each.map((time) => time.toFixed(1)).join(' ')}`);
} else {
  const run = { trees, list, table }[program];
  let made;
  run(Number(size));
  const time = used(() => (made = run(Number(size))));
  console.log(`result ${((time * 1000) / made).toFixed(2)} ${(time / 1000).toFixed(0)}`);
}
