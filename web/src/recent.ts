/** The newest results of each task, for the overview. */

import { askResults, now, type Result, type Task } from './api';
import { Store } from './store';

/** How far back they reach, and how often new ones are asked for at the most, in milliseconds. */
const REACH = 180_000;
const OFTEN = 1000;

/** Questions at once: browsers keep more waiting anyway. */
const AT_ONCE = 5;

export const recent = new Store<ReadonlyMap<string, Result[]>>(new Map());

let running = false;
let asked = 0;

/** Asks for what is new, unless that was done just now. */
export async function refreshRecent(tasks: Task[]): Promise<void> {
  if (running || Date.now() - asked < OFTEN) return;
  running = true;
  asked = Date.now();
  const found = new Map<string, Result[]>();
  // Flows have none by the second.
  const waiting = tasks.filter((it) => it.measure !== 'flows');
  const work = async (): Promise<void> => {
    for (let task = waiting.pop(); task; task = waiting.pop()) {
      found.set(task.name, await extended(task.name));
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    recent.set(found);
  } catch {
    // What the link is like is told elsewhere, and it is tried again.
  } finally {
    running = false;
  }
}

async function extended(name: string): Promise<Result[]> {
  const from = now() - REACH;
  const known = (recent.value.get(name) ?? []).filter((it) => it.begin_ns / 1e6 >= from);
  const last = known.at(-1);
  const since = last ? last.begin_ns / 1e6 + 1 : from;
  const { results } = await askResults(name, { from: since, until: now() + REACH }, 1);
  return [...known, ...results];
}
