// A workspace of a test's own with one file, and the program on it. Removed at the end, its server stopped first.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

export class Scratch {
  constructor(program) {
    this.program = program;
    this.root = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-mcp-'));
    this.run('init');
    fs.writeFileSync(this.at('a.txt'), 'one\ntwo\n');
  }

  at(name) {
    return path.join(this.root, name);
  }

  get(name) {
    return fs.readFileSync(this.at(name), 'utf8');
  }

  // How an MCP client starts the bridge.
  get command() {
    return { command: this.program, args: ['--workspace', this.root, 'mcp'], cwd: this.root };
  }

  run(...words) {
    const done = spawnSync(this.program, ['--workspace', this.root, '--json', ...words],
      { cwd: this.root, encoding: 'utf8' });
    if (done.error) throw done.error;
    return done;
  }

  // Publishes a marker and a store that agree, so that the next generation is this number + 1. Before any server runs.
  forgeGenerations(last) {
    const counters = `{"0123456789abcdef":${last}}`;
    const digest = createHash('sha256').update(counters).digest('hex');
    this.#publish('.generations-initialized',
      `{"protocol":"room.generation.v2","map_sha256":"${digest}","high_water":${last},` +
      `"prepared_counters":${counters}}`);
    this.#publish('generations.json', `{"protocol":"room.generation.v2","counters":${counters}}`);
  }

  remove() {
    this.run('stop');
    fs.rmSync(this.root, { recursive: true, force: true });
  }

  #publish(name, text) {
    fs.writeFileSync(this.at(path.join('.squad', name)), text, { mode: 0o600 });
  }
}
