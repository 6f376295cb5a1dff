// The workflow through an official TypeScript SDK client, over its own stdio transport.
//   node client.mjs PROGRAM v1|legacy|auto|pinned
import assert from 'node:assert/strict';
import { forge, runWorkflow } from './workflow.mjs';
import { Scratch } from './scratch.mjs';

const [program, mode] = process.argv.slice(2);
const IDENTITY = { name: 'holdfast-tests', version: '1.0.0' };
const VERSION_OF = { v1: '2025-11-25', legacy: '2025-11-25', auto: '2026-07-28', pinned: '2026-07-28' };
const NEGOTIATION = { legacy: 'legacy', auto: 'auto', pinned: { pin: '2026-07-28' } };

async function connect(command) {
  if (mode === 'v1') {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
    const transport = new StdioClientTransport(command);
    let version;
    transport.setProtocolVersion = (negotiated) => { version = negotiated; };
    const client = new Client(IDENTITY);
    await client.connect(transport);
    return { client, version: () => version };
  }
  const { Client } = await import('@modelcontextprotocol/client');
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
  const client = new Client(IDENTITY, { versionNegotiation: { mode: NEGOTIATION[mode] } });
  await client.connect(new StdioClientTransport(command));
  return { client, version: () => client.getNegotiatedProtocolVersion() };
}

const scratch = new Scratch(program);
try {
  assert.ok(mode in VERSION_OF, `no such mode: ${mode}`);
  forge(scratch);
  const { client, version } = await connect(scratch.command);
  const noise = [];
  client.onerror = (error) => noise.push(error);
  assert.equal(version(), VERSION_OF[mode]);
  assert.equal(client.getServerVersion().name, 'holdfast');
  // Prompts, logging and completion are not of the product.
  const { experimental, extensions, ...capabilities } = client.getServerCapabilities();
  assert.ok(experimental ?? extensions);
  assert.deepEqual(Object.keys(capabilities).sort(), ['resources', 'tools']);
  await runWorkflow(scratch, {
    list: async () => (await client.listTools()).tools,
    call: (name, args) => client.callTool({ name, arguments: args }),
  });
  await assert.rejects(client.callTool({ name: 'no_such_tool', arguments: {} }), { code: -32602 });
  const leases = await client.readResource({ uri: 'holdfast://leases' });
  assert.deepEqual(JSON.parse(leases.contents[0].text).leases, []);
  await client.close();
  assert.deepEqual(noise, []);
  console.log(`${mode}: acquire, read, edit, stale write, release, under ${VERSION_OF[mode]}`);
} finally {
  scratch.remove();
}
