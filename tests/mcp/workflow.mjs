// What an agent does with a file, through one of the official clients: acquire, read, edit, a stale write that is
// refused, release. The generations lie above 2^53 and stay exact, both ways (field report M32); every structured
// answer is valid under its tool's output schema and says the same as its text.
import assert from 'node:assert/strict';
import { Ajv2020 } from 'ajv/dist/2020.js';

const FORGED = '9007199254740992'; // 2^53: no double is the next number
const FIRST = '9007199254740993';
const SECOND = '9007199254740994';
const TOOLS = ['lease_acquire', 'lease_heartbeat', 'lease_release', 'lease_list', 'file_read', 'file_write',
  'file_edit', 'act_prepare', 'act_approve', 'act_commit', 'result_get', 'handoff_status', 'reconcile_list',
  'quarantine_list', 'doctor'];

// `list()` gives the tools; `call(name, args)` gives a tool's whole result, for a refusal too. `brief` leaves out what
// is no part of the workflow, for a client that takes seconds a call.
export async function runWorkflow(scratch, { list, call, brief = false }) {
  const tools = await list();
  assert.deepEqual(tools.map((tool) => tool.name), TOOLS);
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: false, strictRequired: false });
  const schemas = new Map(
    tools.map((tool) => [tool.name, [ajv.compile(tool.inputSchema), ajv.compile(tool.outputSchema)]]));

  const answered = async (name, args) => {
    const [, isOutput] = schemas.get(name);
    const result = await call(name, args);
    assert.ok(isOutput(result.structuredContent), `${name}: ${ajv.errorsText(isOutput.errors)}`);
    assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
    return result;
  };
  const done = async (name, args) => {
    const [isInput] = schemas.get(name);
    assert.ok(isInput(args), `${name}: ${ajv.errorsText(isInput.errors)}`);
    const result = await answered(name, args);
    assert.ok(!result.isError, JSON.stringify(result.structuredContent));
    return result.structuredContent;
  };
  const refused = async (code, name, args) => {
    const result = await answered(name, args);
    assert.equal(result.isError, true, `${name} was not refused`);
    assert.equal(result.structuredContent.error.code, code);
    return result.structuredContent.error;
  };

  const who = { scope: 'a.txt', owner: 'alice', task: 'build' };
  const keysOf = (granted) => {
    const { generation, started_at } = granted.leases[0];
    return { ...who, generation, started_at };
  };

  const first = keysOf(await done('lease_acquire', who));
  assert.equal(first.generation, FIRST);

  const read = await done('file_read', { scope: 'a.txt' });
  assert.equal(read.content, 'one\ntwo\n');

  const edited = await done('file_edit',
    { ...first, preimage_sha256: read.sha256, replacements: [{ old: 'two', new: 'zwei' }] });
  assert.equal(edited.generation, FIRST);
  assert.equal(edited.leased_scope, 'project:/a.txt');
  assert.equal(scratch.get('a.txt'), 'one\nzwei\n');

  const second = keysOf(await done('lease_acquire', { ...who, fresh: true }));
  assert.equal(second.generation, SECOND);

  const stale = await refused('stale_lease_generation', 'file_write', { ...first, content: 'stale' });
  assert.equal(stale.effect, 'none');
  assert.match(stale.message, new RegExp(`${FIRST}.*${SECOND}`));
  assert.equal(scratch.get('a.txt'), 'one\nzwei\n');

  // The number that a double makes of the first generation is another number; one above 2^53 is refused, not rounded.
  await refused('stale_lease_generation', 'file_write', { ...first, generation: FORGED, content: 'rounded' });
  await refused('number_invalid', 'file_write', { ...second, generation: Number(SECOND), content: 'a number' });
  assert.equal(scratch.get('a.txt'), 'one\nzwei\n');

  if (!brief) {
    await done('file_write', { ...second, content: 'three\n', preimage_sha256: edited.planned_sha256 });
    assert.equal(scratch.get('a.txt'), 'three\n');
    assert.equal((await done('lease_heartbeat', second)).renewed, true);
    const holding = await done('lease_list', {});
    assert.deepEqual(holding.leases.map((lease) => lease.generation), [SECOND]);
    await refused('stale_lease_generation', 'lease_release', first);
  }

  const released = await done('lease_release', second);
  assert.equal(released.content_mismatch, false);
  if (brief) return;

  assert.deepEqual((await done('lease_list', {})).leases, []);
  assert.equal((await done('file_read', { scope: 'a.txt' })).content, 'three\n');
  assert.deepEqual((await done('reconcile_list', {})).reconcile, []);
  assert.deepEqual((await done('quarantine_list', {})).quarantine, []);
  assert.deepEqual((await done('handoff_status', {})).handoffs, []);
  await refused('not_found', 'act_approve', { operation_id: 'never-prepared' });
  await done('doctor', {});
}

export function forge(scratch) {
  scratch.forgeGenerations(FORGED);
}
