/** The newest results of each task, for the overview. */

import { fetchRecent, now, type Recent } from './api';
import { Store } from './store';

/** Time range, and min interval of requests, in milliseconds. */
const REACH = 180_000;
const OFTEN = 1000;

/** Requests overlap the newest result by `LATE`; all results are reloaded every `ALL` milliseconds. */
const LATE = 10_000;
const ALL = 20_000;

/** Results by task number. */
export const recent = new Store<ReadonlyMap<number, Recent[]>>(new Map());

/** Collectors that do not answer or cannot store results. */
export interface CollectorTroubles {
  why: string[];
  /** Tasks without results. */
  tasks: ReadonlySet<number>;
}

export const troubles = new Store<CollectorTroubles>({ why: [], tasks: new Set() });

let running = false;
let asked = 0;
let askedForAll = 0;

/** Loads new results, unless that was done just now. */
export async function refreshRecent(): Promise<void> {
  const at = Date.now();
  if (running || at - asked < OFTEN) return;
  running = true;
  asked = at;
  const reach = now() - REACH;
  const isForAll = at - askedForAll >= ALL;
  const from = isForAll ? reach : Math.max(reach, newest() - LATE);
  try {
    const answer = await fetchRecent(from);
    const found = Object.entries(answer.results).map(([task, news]): [number, Recent[]] => [Number(task), news]);
    const why = [...(answer.not_answered ?? []), ...(answer.cannot_store ?? [])];
    troubles.set({ why, tasks: new Set(answer.without_results) });
    const before = isForAll ? new Map<number, Recent[]>() : recent.value;
    recent.set(new Map(found.map(([task, news]) => [task, [...between(before.get(task), reach, from), ...news]])));
    if (isForAll) askedForAll = at;
  } catch {
    // The state of the connection is shown elsewhere; the next call retries.
  } finally {
    running = false;
  }
}

const begin = (result: Recent): number => result.begin_ns / 1e6;

const between = (results: Recent[] = [], from: number, until: number): Recent[] =>
  results.filter((it) => begin(it) >= from && begin(it) < until);

/** Start of the newest result. */
function newest(): number {
  const last = [...recent.value.values()].flatMap((results) => results.at(-1) ?? []);
  return last.reduce((found, it) => Math.max(found, begin(it)), 0);
}
