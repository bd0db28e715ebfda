// Drives pages of `brolga explore` in Chromium, as a reader would: clicks rows, passes and nodes of pictures, searches, presses keys.
//
//   node session.mjs CHROMIUM open PAGE…        each page opens, draws and logs no error
//   node session.mjs CHROMIUM drive PAGE        rows light up in all columns; pictures, search, theme
//   node session.mjs CHROMIUM large PAGE        a step of scrolling or selecting takes less than 100 ms
//   node session.mjs CHROMIUM picture PAGE#… FILE.png [WIDTH HEIGHT [SCRIPT]]
//
// The browser is spoken to over a pipe (its debugging protocol), so nothing has to be installed beside it. Exit status 1 and a line
// on the standard error for what does not hold; 2 if there is no browser to speak to.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [chromium, mode, ...args] = process.argv.slice(2);
const profile = mkdtempSync(join(tmpdir(), 'brolga-explore-'));
const size = mode === 'picture' && args[2] ? [+args[2], +args[3]] : [1600, 900];
const browser = spawn(chromium, [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--remote-debugging-pipe', '--hide-scrollbars',
  `--user-data-dir=${profile}`, `--window-size=${size}`, 'about:blank',
], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });

// ---- the protocol ----

const waiting = new Map(), errors = [];
let last = 0, buffer = '', session;
browser.on('error', error => { console.error(`no browser: ${error.message}`); process.exit(2); });
browser.stdio[4].on('data', data => {
  buffer += data;
  const messages = buffer.split('\0');
  buffer = messages.pop();
  for (const text of messages) {
    const message = JSON.parse(text);
    if (message.id) {
      const { done, failed } = waiting.get(message.id);
      waiting.delete(message.id);
      if (message.error) failed(new Error(message.error.message)); else done(message.result);
    } else if (message.method === 'Runtime.exceptionThrown') {
      const { text, exception } = message.params.exceptionDetails;
      errors.push(exception?.description ?? text);
    } else if (message.method === 'Log.entryAdded' && message.params.entry.level === 'error') {
      errors.push(message.params.entry.text);
    } else if (message.method === 'Network.requestWillBeSent' && !/^(file|data|about):/.test(message.params.request.url)) {
      errors.push(`the page asks for ${message.params.request.url}`);
    }
  }
});
const request = (sessionId, method, params) => new Promise((done, failed) => {
  waiting.set(++last, { done, failed });
  browser.stdio[3].write(JSON.stringify({ id: last, method, params, sessionId }) + '\0');
});
const send = (method, params = {}) => request(session, method, params);
const ofBrowser = method => request(undefined, method, {});

/** The value of an expression in the page; promises are waited for. */
async function value(expression) {
  const { result, exceptionDetails } = await send('Runtime.evaluate', { expression, returnByValue: true, awaitPromise: true });
  if (exceptionDetails) throw new Error(`${expression}: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`);
  return result.value;
}

async function open(page) {
  const [path, hash] = page.split('#');
  errors.length = 0;
  await send('Page.navigate', { url: 'about:blank' });
  await send('Page.navigate', { url: pathToFileURL(path).href + (hash ? '#' + hash : '') });
  for (let n = 0; n < 200; n++) {
    if (await value('document.readyState === "complete" && !!document.querySelector("footer")')) return;
    if (errors.length) break;
    await new Promise(done => setTimeout(done, 25));
  }
  throw new Error(`${path} does not open: ${errors.join('; ') || 'no answer'}`);
}

async function click(x, y) {
  for (const type of ['mousePressed', 'mouseReleased']) await send('Input.dispatchMouseEvent', { type, x, y, button: 'left', clickCount: 1 });
}

/** Clicks the middle of the first element that a selector or an expression for an element gives. */
async function clickOn(expression) {
  const at = await value(`(() => { const node = ${expression}; if (!node) return null; node.scrollIntoView({ block: 'nearest' });
    const r = node.getBoundingClientRect(); return [r.x + Math.min(r.width / 2, 60), r.y + Math.min(r.height / 2, 9)]; })()`);
  check(at, `there is something to click: ${expression}`);
  await click(...at);
}

async function press(key) {
  const text = key.length === 1 ? key : undefined;
  await send('Input.dispatchKeyEvent', { type: 'keyDown', key, text });
  await send('Input.dispatchKeyEvent', { type: 'keyUp', key });
}

function check(holds, what) {
  if (!holds) throw new Error(`it does not hold that ${what}`);
}

// ---- what is done ----

const pane = kind => `S.panes.find(pane => pane.kind === '${kind}')`;
const lit = kind => value(`${pane(kind)}.node.querySelectorAll('.r.lit').length`);

async function drawn() {
  check(await value(`document.querySelectorAll('.r').length > 10`), 'rows are drawn');
  check(await value(`document.querySelectorAll('.list.funcs .item').length === D.funcs.length`), 'all functions are listed');
  check(!errors.length, `the page logs no error: ${errors.join('; ')}`);
}

/** Opens every view of every function, and every stage. */
async function everything() {
  await value(`(() => {
    for (let i = 0; i < D.funcs.length; i++) {
      openFunction(i);
      for (const kind of KINDS.flatMap(group => group[1].map(([id]) => id))) S.panes[1].show(kind);
      // The picture was drawn; laid out again for every stage of large functions it takes minutes.
      for (const pane of S.panes) if (pane.view.picture) pane.show('clif');
      S.panes[1].show('pass');
      for (let n = 0; n < D.funcs[i].stages.length; n++) openStage(n);
    }
  })()`);
  check(!errors.length, `every view of every function is drawn: ${errors.join('; ')}`);
}

async function drive() {
  await value(`openFunction(D.funcs.findIndex(f => f.asm && f.stages.length > 3))`);
  // A row of the function's body in the source lights up in the IR and in the machine code.
  const row = await value(`(() => { const view = ${pane('source')}.view, asm = ${pane('asm')}.view, pass = ${pane('pass')}.view;
    return view.rows.findIndex(row => (row.os ?? []).some(o => D.of[o - 1] === S.func && asm.byOrigin.has(o) && pass.byOrigin.has(o))); })()`);
  check(row >= 0, 'a row of the source has machine code');
  await value(`${pane('source')}.bring(${row})`);
  await new Promise(done => setTimeout(done, 60));
  await clickOn(`${pane('source')}.node.querySelector('.r[data-i="${row}"]')`);
  for (const kind of ['source', 'pass', 'asm']) check(await lit(kind) > 0, `the row lights up in ${kind}`);
  check(await value(`document.querySelectorAll('.node.lit').length > 0`), 'its block lights up in the picture');
  // The machine code lights up the source in turn.
  await clickOn(`${pane('asm')}.node.querySelector('.r.lit')`);
  check(await lit('source') > 0, 'machine code lights up the source');
  // The ranges of values: as many lanes as values that are needed at once, and rows that light up with the others.
  await value(`S.panes[1].show('live')`);
  check(await value(`document.querySelectorAll('.lanes .k').length > 0`), 'ranges of values are drawn');
  check(await lit('live') > 0, 'the row lights up beside its ranges');
  await value(`S.panes[1].show('pass')`);
  // Passes.
  const stages = await value('S.stage');
  await clickOn(`[...document.querySelectorAll('.list.steps .item:not(.idle):not(.on)')].find(node => node.onclick)`);
  check(await value('S.stage') !== stages, 'a click on a pass shows it');
  await press('[');
  await press(']');
  // Pictures: a node lights up rows, and the picture can be changed and zoomed.
  await value(`openStage(D.funcs[S.func].stages.length - 1)`);
  await press('Escape');
  check(await value('S.origins.size === 0'), 'Escape clears the selection');
  await clickOn(`${pane('cfg')}.node.querySelector('.node .title')`);
  check(await value('S.origins.size > 0'), 'a node of the picture selects its rows');
  check(await lit('pass') > 0, 'its rows light up');
  const before = await value(`document.querySelector('.world').getAttribute('transform')`);
  await press('+');
  check(await value(`document.querySelector('.world').getAttribute('transform')`) !== before, 'the picture grows');
  for (const kind of ['dom', 'loops', 'calls', 'cfg']) {
    await press('g');
    check(await value(`S.panes.some(pane => pane.kind === '${kind}' && pane.node.querySelectorAll('.node').length > 0)`), `the picture ${kind} has nodes`);
  }
  // Search.
  await press('/');
  await send('Input.insertText', { text: 'return' });
  check(/^\d+ rows?$/.test(await value(`document.querySelector('.search span').textContent`)), 'the search counts rows');
  check(await value(`document.querySelectorAll('.hit').length > 0`), 'what is found is marked');
  await press('Enter');
  check(await value('S.panes.some(pane => pane.row >= 0 && /return/i.test(pane.view.rows[pane.row].text))'), 'Enter selects what is found');
  await press('Escape');
  check(await value(`document.querySelectorAll('.hit').length === 0`), 'Escape ends the search');
  // Rows by key, theme, the list of keys.
  await value(`focusPane(S.panes.findIndex(pane => pane.kind === 'pass'))`);
  await press('j');
  const first = await value(`${pane('pass')}.row`);
  await press('j');
  check(await value(`${pane('pass')}.row`) === first + 1, 'j goes to the next row');
  const theme = await value('document.documentElement.dataset.theme');
  await press('t');
  check(await value('document.documentElement.dataset.theme') !== theme, 't changes the theme');
  await press('?');
  check(await value(`document.querySelector('dialog').open`), '? lists the keys');
  await value(`document.querySelector('dialog').close()`);
}

/** Times of 40 steps of scrolling and 40 of selecting. The limit is one of processor time of the page's process, all threads together: a machine with other
 *  work to do has longer steps by the clock, which are printed. */
async function large() {
  const busy = async () => (await ofBrowser('SystemInfo.getProcessInfo')).processInfo
    .filter(process => process.type === 'renderer').reduce((sum, process) => sum + process.cpuTime * 1000, 0);
  await value(`globalThis.steps = async action => {
    const pane = ${pane('pass')}, rows = pane.view.rows.length, times = [];
    for (let n = 0; n < 40; n++) {
      const start = performance.now();
      action(pane, Math.floor(rows * ((n * 37) % 40) / 40));
      await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
      times.push(performance.now() - start);
    }
    return times.sort((a, b) => a - b);
  }`);
  const rows = await value(`${pane('pass')}.view.rows.length`);
  check(rows >= 5000, 'the function has 5,000 rows');
  for (const [name, action] of [['scrolling', '(pane, i) => { pane.scroll.scrollTop = i * ROW; }'], ['selecting', 'selectRow']]) {
    const before = await busy();
    const times = await value(`steps(${action})`);
    const own = (await busy() - before) / times.length;
    console.log(`${rows} rows: a step of ${name} takes ${own.toFixed(1)} ms; by the clock ${times[20].toFixed(1)} ms, ${times.at(-1).toFixed(1)} ms at most`);
    check(own < 100, `a step of ${name} takes less than 100 ms`);
  }
}

async function main() {
  const { targetInfos } = await send('Target.getTargets');
  const { targetId } = targetInfos.find(target => target.type === 'page');
  session = (await send('Target.attachToTarget', { targetId, flatten: true })).sessionId;
  for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await send(`${domain}.enable`);
  switch (mode) {
    case 'open': for (const page of args) { await open(page); await drawn(); await everything(); } break;
    case 'drive': await open(args[0]); await drawn(); await drive(); check(!errors.length, `no error is logged: ${errors.join('; ')}`); break;
    case 'large': await open(args[0]); await large(); break;
    case 'picture': {
      await open(args[0]);
      await send('Emulation.setDeviceMetricsOverride', { width: size[0], height: size[1], deviceScaleFactor: 1, mobile: false });
      await value(`for (const pane of S.panes) pane.refresh()`);
      if (args[4]) await value(args[4]);
      await new Promise(done => setTimeout(done, 200));
      const { data } = await send('Page.captureScreenshot', { format: 'png' });
      writeFileSync(args[1], Buffer.from(data, 'base64'));
      break;
    }
    default: throw new Error(`no such mode: ${mode}`);
  }
}

let status = 0;
await main().catch(error => { console.error(error.message); status = 1; });
browser.kill();
await new Promise(done => browser.on('exit', done));
rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
process.exit(status);
