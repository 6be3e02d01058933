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
  private constructor(
    private readonly process: ChildProcess,
    /** What it said, up to what was waited for. */
    readonly said: string,
  ) {}

  /** Starts a command of ours, and waits until it says something. */
  static async start(awaited: RegExp, ...args: string[]): Promise<Node> {
    const child = spawn(WIRESTAMP, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    const lines: string[] = [];
    for await (const line of createInterface(child.stderr)) {
      lines.push(line);
      if (awaited.test(line)) {
        child.stderr.resume();
        return new Node(child, lines.join('\n'));
      }
    }
    throw new Error(`wirestamp ${args.join(' ')} ended:\n${lines.join('\n')}`);
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

  /** Fills it with a day of results, before it runs. */
  seed(): void {
    const { status, stderr } = spawnSync(SEED, [join(this.folder, 'controller')]);
    if (status !== 0) throw new Error(String(stderr));
  }

  async start(): Promise<void> {
    const authority = ['--authority', join(this.folder, 'authority')];
    const folder = ['--folder', join(this.folder, 'controller')];
    const places = ['--listen', this.address, '--page', this.page];
    const node = await Node.start(/page at/, 'controller', ...places, ...folder, ...authority);
    this.page = /page at http:\/\/(\S+)/.exec(node.said)?.[1] ?? '';
    this.address = /listens at ([^;]+);/.exec(node.said)?.[1] ?? '';
    this.nodes.push(node);
  }

  /** Lets a probe in, which really captures. */
  async probe(name: string): Promise<void> {
    const token = this.pki('token', name);
    const folder = ['--folder', join(this.folder, name), '--token', token];
    this.nodes.push(await Node.start(/probe \S+; Ctrl-C/, 'probe', this.address, ...folder));
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
}

export const test = base.extend<Fixtures, WorkerFixtures>({
  empty: async ({}, use) => {
    const mesh = new Mesh();
    await mesh.start();
    await use(mesh);
    await mesh.remove();
  },
  day: [
    async ({}, use) => {
      const mesh = new Mesh();
      mesh.seed();
      await mesh.start();
      await use(mesh);
      await mesh.remove();
    },
    { scope: 'worker' },
  ],
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
