// The official conformance suite for one revision, over HTTP, against `holdfast mcp --conformance-fixtures` behind one
// of two fronts. Passing means: every scenario that the revision requires ran, and what failed is exactly the baseline.
//   node conformance.mjs PROGRAM proxy|bridge 2025-11-25|2026-07-28 OUTPUT-FOLDER
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { Scratch } from './scratch.mjs';

const [program, front, revision, output] = process.argv.slice(2);
const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const suite = here('./node_modules/@modelcontextprotocol/conformance');
const baseline = here(`./baselines/${front}-${revision}.yml`);

async function freePort() {
  const probe = net.createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  await once(probe, 'close');
  return port;
}

function frontCommand(port, scratch) {
  const { command, args } = scratch.command;
  const server = ['--', command, ...args, '--conformance-fixtures'];
  if (front === 'bridge') return [here('./http_bridge.mjs'), String(port), ...server];
  assert.equal(front, 'proxy');
  const era = revision === '2026-07-28' ? 'modern' : 'legacy';
  return [here('./node_modules/mcp-proxy/dist/bin/mcp-proxy.mjs'), '--port', String(port), '--host', '127.0.0.1',
    '--server', 'stream', '--upstreamProtocol', era, ...server];
}

async function listens(port, child) {
  for (let tries = 0; tries < 300; ++tries) {
    assert.equal(child.exitCode, null, 'the front has ended');
    const socket = net.connect(port, '127.0.0.1');
    const connected = await once(socket, 'connect').then(() => true, () => false);
    socket.destroy();
    if (connected) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.fail('nothing listens');
}

// The lines of a section of the suite's report, without its mark.
const marked = (text, mark) =>
  [...text.matchAll(new RegExp(`^\\s*${mark} ([^\\s:]+(?::[^\\s]+)?)`, 'gm'))].map((found) => found[1]);

function judge(report, status) {
  assert.equal(status, 0, 'something failed that the baseline does not name, or passed that it names');
  const required = parse(fs.readFileSync(path.join(suite, 'requirements', `${revision}.yaml`), 'utf8')).server;
  const summary = report.slice(report.indexOf('=== SUMMARY ==='));
  const ran = new Set([...summary.matchAll(/^[✓✗] ([^:]+): /gm)].map((found) => found[1]));
  assert.deepEqual(required.filter((scenario) => !ran.has(scenario)), [], 'required scenarios that did not run');
  const expected = parse(fs.readFileSync(baseline, 'utf8')).server;
  assert.deepEqual(marked(report, '~').sort(), [...expected].sort(), 'the failures are not exactly the baseline');
  const failing = new Set(expected.map((entry) => entry.split(':')[0]));
  console.log(`${revision} behind ${front}: ${required.length} required scenarios, ` +
    `${required.length - failing.size} passed whole, ${failing.size} with failures of the baseline; ` +
    `with what is not scored: ${/Total: (.*)/.exec(summary)[1]}`);
}

const scratch = new Scratch(program);
const port = await freePort();
const child = spawn(process.execPath, frontCommand(port, scratch),
  { cwd: scratch.root, stdio: ['ignore', 'ignore', 'inherit'] });
try {
  await listens(port, child);
  fs.rmSync(output, { recursive: true, force: true });
  const done = spawnSync(process.execPath,
    [path.join(suite, 'dist/index.js'), 'server', '--url', `http://127.0.0.1:${port}/mcp`, '--requirements', revision,
      '--expected-failures', baseline, '-o', output],
    { encoding: 'utf8', timeout: 240_000, maxBuffer: 64 << 20, env: { ...process.env, NO_COLOR: '1' } });
  if (done.error) throw done.error;
  const report = done.stdout.replaceAll(/\u001b\[[0-9;]*m/g, '');
  console.log(report, done.stderr);
  judge(report, done.status);
} finally {
  child.kill();
  scratch.remove();
}
