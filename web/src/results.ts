/** Results of a task in the shown time range; updated if it is the newest. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { fetchFlows, fetchResults, now, stepOf, type Flow, type Result, type TimeRange } from './api';
import { resultEvents } from './mesh';
import type { Range } from './route';

export interface Loaded {
  stretch: TimeRange;
  results: Result[];
  /** Seconds of each result. */
  step: number;
  /** Collectors whose results are missing. */
  missing: string[];
}

export interface Loading {
  loaded: Loaded | null;
  error: string | null;
}

/** Time to gather notifications, in milliseconds. */
const GATHER_MS = 900;

export function stretchOf(range: Range): TimeRange {
  if (range.is === 'fixed') return { from: range.from, until: range.until };
  return { from: now() - range.seconds * 1000, until: now() };
}

export const useResults = (name: string, range: Range): Loading =>
  useAnswer(name, range, (before: Loaded | null, signal) => more(name, range, before, signal));

/** The flows of a task in the shown time range. */
export const useFlows = (name: string, range: Range): { loaded: Flow[] | null; error: string | null } =>
  useAnswer(name, range, (_: Flow[] | null, signal) => fetchFlows(name, stretchOf(range), signal));

/** A response about a task, reloaded after notifications. `ask` gets the previous response. */
function useAnswer<T>(
  name: string,
  range: Range,
  ask: (before: T | null, signal: AbortSignal) => Promise<T>,
): { loaded: T | null; error: string | null } {
  const [loading, show] = useState<{ loaded: T | null; error: string | null }>({ loaded: null, error: null });
  const loaded = useRef<T | null>(null);
  const key = JSON.stringify([name, range]);
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | null = null;
    loaded.current = null;
    const load = async (): Promise<void> => {
      try {
        loaded.current = await ask(loaded.current, abort.signal);
        show({ loaded: loaded.current, error: null });
      } catch (error) {
        if (!abort.signal.aborted) {
          show({ loaded: loaded.current, error: (error as Error).message });
        }
      }
    };
    const soon = (): void => {
      timer ??= setTimeout(() => void load().finally(() => (timer = null)), GATHER_MS);
    };
    void load();
    const stop = range.is === 'last' ? resultEvents.subscribe(soon) : () => undefined;
    return () => {
      abort.abort();
      stop();
      if (timer) clearTimeout(timer);
    };
  }, [key]);
  return loading;
}

/** Appends new results. The last known result is reloaded, because its interval may not have ended. */
async function more(name: string, range: Range, before: Loaded | null, signal: AbortSignal): Promise<Loaded> {
  const stretch = stretchOf(range);
  const step = stepOf(stretch);
  // Results that were missing may be earlier than the last one.
  const last = before && before.missing.length === 0 ? before.results.at(-1) : undefined;
  const from = last ? last.begin_ns / 1e6 : stretch.from;
  const answer = await fetchResults(name, { from, until: stretch.until }, step, signal);
  const begins = stretch.from * 1e6;
  const earlier = last ? (before?.results ?? []) : [];
  const known = earlier.filter((it) => it.begin_ns >= begins && it !== last);
  const results = answer.results.length > 0 || !last ? answer.results : [last];
  const missing = (answer.partial ?? []).map((it) => it.collector);
  return { stretch, results: [...known, ...results], step: answer.step_s ?? 1, missing };
}
