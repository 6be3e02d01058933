/** The newest results of each task, for the overview. */

import { askRecent, now, type Recent } from './api';
import { Store } from './store';

/** How far back they reach, and how often new ones are asked for at the most, in milliseconds. */
const REACH = 180_000;
const OFTEN = 1000;

/** What comes is asked for from so much before the newest on. What came later is found with all, now and then. */
const LATE = 10_000;
const ALL = 20_000;

/** By the numbers of the tasks. */
export const recent = new Store<ReadonlyMap<number, Recent[]>>(new Map());

let running = false;
let asked = 0;
let askedForAll = 0;

/** Asks for what is new, unless that was done just now. */
export async function refreshRecent(): Promise<void> {
  const at = Date.now();
  if (running || at - asked < OFTEN) return;
  running = true;
  asked = at;
  const reach = now() - REACH;
  const isForAll = at - askedForAll >= ALL;
  const from = isForAll ? reach : Math.max(reach, newest() - LATE);
  try {
    const found = await askRecent(from);
    const before = isForAll ? new Map<number, Recent[]>() : recent.value;
    recent.set(new Map(found.map(([task, news]) => [task, [...between(before.get(task), reach, from), ...news]])));
    if (isForAll) askedForAll = at;
  } catch {
    // What the link is like is told elsewhere, and it is tried again.
  } finally {
    running = false;
  }
}

const begin = (result: Recent): number => result.begin_ns / 1e6;

const between = (results: Recent[] = [], from: number, until: number): Recent[] =>
  results.filter((it) => begin(it) >= from && begin(it) < until);

/** When the newest of all begins. */
function newest(): number {
  const last = [...recent.value.values()].flatMap((results) => results.at(-1) ?? []);
  return last.reduce((found, it) => Math.max(found, begin(it)), 0);
}
