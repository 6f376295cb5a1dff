// Streamable HTTP in front of a stdio server, as thin as can be: for the conformance suite, which speaks HTTP only.
//   node http_bridge.mjs PORT -- COMMAND ARGS…
//
// Unlike mcp-proxy it is no MCP client of its own: every message goes through as it is, but for request ids of the
// modern era, which are made unique among the HTTP requests that share the one process. Legacy: one process a session.
// What a transport has to do itself it does: sessions, HTTP status by error code, version header, Host and Origin.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import readline from 'node:readline';

const separator = process.argv.indexOf('--');
const port = Number(process.argv[2]);
const [command, ...args] = process.argv.slice(separator + 1);

const VERSION = 'io.modelcontextprotocol/protocolVersion';
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';
const HEADER_MISMATCH = -32020;
const NOT_FOUND_CODES = [-32601];
const BAD_REQUEST_CODES = [-32700, -32600, -32602, HEADER_MISMATCH, -32021, -32022];

// One process of the server, and the HTTP exchanges whose requests it works on.
class Server {
  constructor({ rename }) {
    this.rename = rename;
    this.asked = 0;
    this.exchanges = new Map(); // id on the pipe -> Exchange
    this.child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    readline.createInterface({ input: this.child.stdout }).on('line', (line) => this.#route(JSON.parse(line)));
    this.child.on('exit', () => { for (const exchange of this.exchanges.values()) exchange.end(); });
  }

  say(message) {
    this.child.stdin.write(JSON.stringify(message) + '\n');
  }

  ask(message, exchange) {
    const id = this.rename ? `http-${++this.asked}` : message.id;
    exchange.id = message.id;
    exchange.token = message.params?._meta?.progressToken;
    this.exchanges.set(id, exchange);
    exchange.response.on('close', () => {
      if (!this.exchanges.delete(id) || !this.rename) return;
      this.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } });
    });
    this.say({ ...message, id });
  }

  close() {
    this.child.stdin.end();
  }

  #route(message) {
    if (message.method === undefined) {
      const exchange = this.exchanges.get(message.id);
      if (!exchange) return;
      this.exchanges.delete(message.id);
      exchange.finish({ ...message, id: exchange.id });
      return;
    }
    const { params } = message;
    const subscription = params?._meta?.[SUBSCRIPTION];
    if (subscription !== undefined) {
      const exchange = this.exchanges.get(subscription);
      exchange?.send({ ...message, params: { ...params, _meta: { ...params._meta, [SUBSCRIPTION]: exchange.id } } });
      return;
    }
    // On a pipe nothing but a progress token says to which request a message belongs: the youngest is meant.
    const running = [...this.exchanges.values()].reverse();
    const token = params?.progressToken;
    const exchange = running.find((one) => token !== undefined && one.token === token) ?? running[0];
    exchange?.send(message);
  }
}

// One POST: answered as JSON where the response comes first, else as a stream of events.
class Exchange {
  constructor(response, { statusByCode, headers = {} }) {
    this.response = response;
    this.statusByCode = statusByCode;
    this.headers = headers;
  }

  send(message) {
    if (!this.response.headersSent) {
      this.response.writeHead(200, { 'content-type': 'text/event-stream', ...this.headers });
    }
    this.response.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
  }

  finish(message) {
    if (this.response.headersSent) {
      this.send(message);
      this.response.end();
      return;
    }
    answer(this.response, this.statusByCode ? statusOf(message) : 200, message, this.headers);
  }

  end() {
    this.response.destroy();
  }
}

function statusOf(message) {
  if (NOT_FOUND_CODES.includes(message.error?.code)) return 404;
  return BAD_REQUEST_CODES.includes(message.error?.code) ? 400 : 200;
}

function answer(response, status, message, headers = {}) {
  response.writeHead(status, { ...(message && { 'content-type': 'application/json' }), ...headers });
  response.end(message && JSON.stringify(message));
}

function refuse(response, status, id, code, text) {
  answer(response, status, { jsonrpc: '2.0', id: id ?? null, error: { code, message: text } });
}

const isLocal = (host) => /^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/.test(host ?? '');
const sessions = new Map();
const modern = new Server({ rename: true });

function postModern(message, request, response) {
  const named = message.params?._meta?.[VERSION];
  const header = request.headers['mcp-protocol-version'];
  if (named !== undefined && named !== header) {
    return refuse(response, 400, message.id, HEADER_MISMATCH, 'the version of the header is not that of the message');
  }
  if (message.id === undefined) {
    modern.say(message);
    return answer(response, 202);
  }
  return modern.ask(message, new Exchange(response, { statusByCode: true }));
}

function postLegacy(message, request, response) {
  if (message.method === 'initialize') {
    const id = randomUUID();
    const server = new Server({ rename: false });
    sessions.set(id, server);
    return server.ask(message, new Exchange(response, { headers: { 'mcp-session-id': id } }));
  }
  const server = sessions.get(request.headers['mcp-session-id']);
  if (!server) return refuse(response, 404, message.id, -32600, 'no such session');
  if (message.method !== undefined && message.id !== undefined) {
    return server.ask(message, new Exchange(response, {}));
  }
  server.say(message);
  return answer(response, 202);
}

function endSession(request, response) {
  const id = request.headers['mcp-session-id'];
  const server = sessions.get(id);
  if (!server) return answer(response, 404);
  server.close();
  sessions.delete(id);
  return answer(response, 200);
}

async function read(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return JSON.parse(Buffer.concat(parts).toString('utf8'));
}

const front = http.createServer(async (request, response) => {
  const origin = request.headers.origin;
  if (!isLocal(request.headers.host) || (origin !== undefined && !isLocal(origin.replace(/^https?:\/\//, '')))) {
    return answer(response, 403);
  }
  if (request.method === 'DELETE') return endSession(request, response);
  if (request.method !== 'POST') return answer(response, 405);
  try {
    const message = await read(request);
    const named = message.params?._meta?.[VERSION] !== undefined;
    const isModern = named || request.headers['mcp-protocol-version'] >= '2026';
    return isModern ? postModern(message, request, response) : postLegacy(message, request, response);
  } catch (problem) {
    return refuse(response, 400, null, -32700, String(problem));
  }
});

front.listen(port, '127.0.0.1');
process.on('SIGTERM', () => {
  modern.close();
  for (const server of sessions.values()) server.close();
  process.exit(0);
});
