/** A controller with a page, for a test; it ends with the test. */

import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test as base, expect } from '@playwright/test';

function needed(variable: string): string {
  const value = process.env[variable];
  if (!value) throw new Error(`${variable} is not set: run this by tools/test-web`);
  return value;
}

/** What was built of the command, and what fills a folder with a day of results. */
const WIRESTAMP = needed('WIRESTAMP');
const SEED = needed('WIRESTAMP_SEED');

export class Node {
  private readonly process: ChildProcess;

  /** Starts a command of ours. */
  constructor(private readonly args: string[]) {
    this.process = spawn(WIRESTAMP, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  }

  /** Waits until it says something; what it said up to then. */
  async says(awaited: RegExp): Promise<string> {
    const { stderr } = this.process;
    const lines: string[] = [];
    for await (const line of createInterface(stderr!)) {
      lines.push(line);
      if (awaited.test(line)) {
        stderr!.resume();
        return lines.join('\n');
      }
    }
    throw new Error(`wirestamp ${this.args.join(' ')} ended:\n${lines.join('\n')}`);
  }

  async end(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = once(this.process, 'exit');
    this.process.kill('SIGKILL');
    await ended;
  }
}

export class Mesh {
  readonly folder = mkdtempSync(join(tmpdir(), 'wirestamp-web-'));
  private nodes: Node[] = [];
  page = '127.0.0.1:0';
  address = '127.0.0.1:0';

  /** Fills it with a day of results, before it runs, and gives so many more paths one. */
  seed(paths = 0): void {
    const { status, stderr } = spawnSync(SEED, [join(this.folder, 'controller'), String(paths)]);
    if (status !== 0) throw new Error(String(stderr));
  }

  async start(): Promise<void> {
    const authority = ['--authority', join(this.folder, 'authority')];
    const folder = ['--folder', join(this.folder, 'controller')];
    const places = ['--listen', this.address, '--page', this.page];
    const said = await this.begin(/page at/, 'controller', ...places, ...folder, ...authority);
    this.page = /page at http:\/\/(\S+)/.exec(said)?.[1] ?? '';
    this.address = /listening at ([^;]+);/.exec(said)?.[1] ?? '';
  }

  /** Lets a probe in, which really captures. */
  async probe(name: string): Promise<void> {
    const token = this.pki('token', name);
    const folder = ['--folder', join(this.folder, name), '--token', token];
    await this.begin(/probe \S+; Ctrl-C/, 'probe', this.address, ...folder);
  }

  /** Starts a node, which is ended with the others also if it never says what is waited for. */
  private begin(awaited: RegExp, ...args: string[]): Promise<string> {
    const node = new Node(args);
    this.nodes.push(node);
    return node.says(awaited);
  }

  /** What the authority says to this. */
  pki(...args: string[]): string {
    const authority = ['--authority', join(this.folder, 'authority')];
    const { status, stdout, stderr } = spawnSync(WIRESTAMP, ['-q', 'pki', ...args, ...authority]);
    if (status !== 0) throw new Error(String(stderr));
    return String(stdout).trim();
  }

  url(path = ''): string {
    return `http://${this.page}/${path}`;
  }

  /** Ends everything that was started, without a word. */
  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.end()));
    this.nodes = [];
  }

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

interface Fixtures {
  /** A controller without anything. */
  empty: Mesh;
  /** Nothing may go wrong unseen: what the console says, and what is asked of others. */
  watched: void;
}

interface WorkerFixtures {
  /** A controller with a day of results, for all tests that only look. */
  day: Mesh;
  /** One with a day of results of each of a hundred paths. */
  hundred: Mesh;
}

/** A controller with a day of results, and of so many more paths. */
async function seeded(paths: number, use: (mesh: Mesh) => Promise<void>): Promise<void> {
  const mesh = new Mesh();
  try {
    mesh.seed(paths);
    await mesh.start();
    await use(mesh);
  } finally {
    await mesh.remove();
  }
}

export const test = base.extend<Fixtures, WorkerFixtures>({
  empty: async ({}, use) => {
    const mesh = new Mesh();
    try {
      await mesh.start();
      await use(mesh);
    } finally {
      await mesh.remove();
    }
  },
  // A day takes some seconds to make, on a busy machine many.
  day: [({}, use) => seeded(0, use), { scope: 'worker', timeout: 180_000 }],
  hundred: [({}, use) => seeded(100, use), { scope: 'worker', timeout: 600_000 }],
  watched: [
    async ({ page }, use) => {
      const wrong: string[] = [];
      page.on('pageerror', (error) => wrong.push(String(error)));
      page.on('console', (message) => {
        // A refused request is told of in the page, which is looked at.
        if (message.type() === 'error' && !message.text().includes('Failed to load resource')) {
          wrong.push(message.text());
        }
      });
      page.on('request', (request) => {
        if (!/^(http:\/\/127\.0\.0\.1:|blob:)/.test(request.url())) wrong.push(request.url());
      });
      await use();
      expect(wrong).toEqual([]);
    },
    { auto: true },
  ],
});

export { expect };
