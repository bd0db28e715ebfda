// The programs of `crates/runtime/benches/heap.rs`, for node: trees, list, table, throw.
//
// node --max-old-space-size=64 benches/heap/heap.js PROGRAM
//
// Prints: program and nanoseconds of processor time for each allocation (or throw), of the second of two runs in one process.
'use strict';

const DEPTH = 18, QUEUE = 100_000, SLOTS = 1 << 18, CHURN = 20_000_000;

class Pair {
  constructor() {
    this.a = null;
    this.b = null;
  }
}

function build(depth) {
  const pair = new Pair();
  if (depth > 0) {
    pair.a = build(depth - 1);
    pair.b = build(depth - 1);
  }
  return pair;
}

function count(tree) {
  return tree.a === null ? 1 : 1 + count(tree.a) + count(tree.b);
}

function trees() {
  const kept = build(DEPTH);
  let all = (2 << DEPTH) - 1;
  for (let depth = 4; depth <= DEPTH; depth += 2)
    for (let round = 0; round < 1 << (DEPTH - depth + 4); round++) all += count(build(depth));
  if (count(kept) !== (2 << DEPTH) - 1) throw new Error();
  return all;
}

function list() {
  let head = new Pair(), tail = head;
  for (let step = 0; step < CHURN; step++) {
    const next = new Pair();
    tail.a = next;
    tail = next;
    if (step >= QUEUE) head = head.a;
  }
  return CHURN + 1;
}

function table() {
  const all = new Array(SLOTS).fill(null);
  let state = 1;
  for (let round = 0; round < CHURN; round++) {
    // 32 bits of the same family: node has no fast 64-bit integers.
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    all[state & (SLOTS - 1)] = new Pair();
  }
  return CHURN;
}

const THROWN = new Error();

function up(n) {
  if (n % 2 === 0) throw THROWN;
  return n;
}

function thrown() {
  let sum = 0;
  for (let n = 0; n < 2_000_000; n++) {
    try {
      sum += up(n & ~1);
    } catch (e) {
      sum += 1;
    }
  }
  return 2_000_000 + (sum === -1 ? 1 : 0);
}

const programs = { trees, list, table, throw: thrown };
const program = programs[process.argv[2]];
let began, number;
for (let round = 0; round < 2; round++) {
  began = process.cpuUsage();
  number = program();
}
const used = process.cpuUsage(began);
const time = 1000 * (used.user + used.system);
console.log(`${process.argv[2]} ${(time / number).toFixed(2)}`);
