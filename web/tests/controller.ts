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

/** The built command, and the program that fills a folder with a day of results. */
const WIRESTAMP = needed('WIRESTAMP');
const SEED = needed('WIRESTAMP_SEED');

export class Node {
  private readonly process: ChildProcess;

  /** Starts a wirestamp command. */
  constructor(private readonly args: string[]) {
    this.process = spawn(WIRESTAMP, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  }

  /** Waits for a line that matches; returns the output so far. */
  async output(awaited: RegExp): Promise<string> {
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

  /** Fills the folder with a day of results, and with a day of each of `paths` more paths. */
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

  /** Starts and admits a probe, which really captures. */
  async probe(name: string): Promise<void> {
    const token = this.pki('token', name);
    const folder = ['--folder', join(this.folder, name), '--token', token];
    await this.begin(/probe \S+; Ctrl-C/, 'probe', this.address, ...folder);
  }

  /** Starts a node and waits for its output. It ends with the others even if the output never comes. */
  private begin(awaited: RegExp, ...args: string[]): Promise<string> {
    const node = new Node(args);
    this.nodes.push(node);
    return node.output(awaited);
  }

  /** Runs `wirestamp pki`; returns its output. */
  pki(...args: string[]): string {
    const authority = ['--authority', join(this.folder, 'authority')];
    const { status, stdout, stderr } = spawnSync(WIRESTAMP, ['-q', 'pki', ...args, ...authority]);
    if (status !== 0) throw new Error(String(stderr));
    return String(stdout).trim();
  }

  url(path = ''): string {
    return `http://${this.page}/${path}`;
  }

  /** Kills all nodes. */
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
  /** Fails the test on console errors and on requests to other hosts. */
  checked: void;
}

interface WorkerFixtures {
  /** A controller with a day of results, for tests that change nothing. */
  day: Mesh;
  /** One with a day of results of each of a hundred paths. */
  hundred: Mesh;
}

/** A controller with a day of results, and with a day of `paths` more paths. */
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
  // Creating a day takes a few seconds, or longer on a busy machine.
  day: [({}, use) => seeded(0, use), { scope: 'worker', timeout: 180_000 }],
  hundred: [({}, use) => seeded(100, use), { scope: 'worker', timeout: 600_000 }],
  checked: [
    async ({ page }, use) => {
      const wrong: string[] = [];
      page.on('pageerror', (error) => wrong.push(String(error)));
      page.on('console', (message) => {
        // The page shows rejected requests, and the tests check that.
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
