// The workflow through the official inspector's command line, one process a call, and its strict look at the schemas.
//   node inspector.mjs PROGRAM legacy|modern
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { forge, runWorkflow } from './workflow.mjs';
import { Scratch } from './scratch.mjs';

const [program, era] = process.argv.slice(2);
const launcher = fileURLToPath(
  new URL('./node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js', import.meta.url));
const TOOL_SAYS_NO = 5;

const scratch = new Scratch(program);

function inspect(...words) {
  const { command, args, cwd } = scratch.command;
  const done = spawnSync(process.execPath,
    [launcher, '--cli', '-q', '--format', 'json', '--protocol-era', era, ...words, '--', command, ...args],
    { cwd, encoding: 'utf8', timeout: 60_000, env: { ...process.env, HOME: scratch.root } });
  if (done.error) throw done.error;
  const lines = done.stdout.trim().split('\n');
  return { status: done.status, answer: JSON.parse(lines[0]), said: done.stderr };
}

try {
  assert.ok(['legacy', 'modern'].includes(era), `no such era: ${era}`);
  forge(scratch);
  await runWorkflow(scratch, {
    brief: true,
    list: async () => {
      const strict = inspect('--method', 'tools/list', '--strict');
      assert.equal(strict.status, 0, strict.said);
      assert.equal(strict.said, '', 'the inspector has nothing to say about the schemas');
      return strict.answer.result.tools;
    },
    call: async (name, args) => {
      const { status, answer, said } = inspect('--method', 'tools/call', '--tool-name', name,
        '--tool-args-json', JSON.stringify(args));
      assert.equal(status, answer.result.isError ? TOOL_SAYS_NO : 0, said);
      return answer.result;
    },
  });
  const leases = inspect('--method', 'resources/read', '--uri', 'holdfast://leases');
  assert.equal(leases.status, 0, leases.said);
  console.log(`inspector, ${era}: acquire, read, edit, stale write, release; schemas are strict`);
} finally {
  scratch.remove();
}
