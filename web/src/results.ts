/** The results of a task in the range that is looked at, kept up to date where that is the newest. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { askFlows, askResults, now, stepOf, type Flow, type Result, type Stretch } from './api';
import { news } from './mesh';
import type { Range } from './route';

export interface Loaded {
  stretch: Stretch;
  results: Result[];
  /** Seconds of each result. */
  step: number;
}

export interface Loading {
  loaded: Loaded | null;
  error: string | null;
}

/** How long is waited for more news, in milliseconds. */
const GATHER = 900;

export function stretchOf(range: Range): Stretch {
  if (range.is === 'fixed') return { from: range.from, until: range.until };
  return { from: now() - range.seconds * 1000, until: now() };
}

export const useResults = (name: string, range: Range): Loading =>
  useAnswer(name, range, (before: Loaded | null, signal) => more(name, range, before, signal));

/** The flows of a task in the range that is looked at. */
export const useFlows = (name: string, range: Range): { loaded: Flow[] | null; error: string | null } =>
  useAnswer(name, range, (_: Flow[] | null, signal) => askFlows(name, stretchOf(range), signal));

/** What is answered about a task, asked for again when there is news, with what was answered before. */
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
      timer ??= setTimeout(() => void load().finally(() => (timer = null)), GATHER);
    };
    void load();
    const stop = range.is === 'last' ? news.subscribe(soon) : () => undefined;
    return () => {
      abort.abort();
      stop();
      if (timer) clearTimeout(timer);
    };
  }, [key]);
  return loading;
}

/** What is there, with what came since. The last of it may have been of a minute that was not over. */
async function more(name: string, range: Range, before: Loaded | null, signal: AbortSignal): Promise<Loaded> {
  const stretch = stretchOf(range);
  const step = stepOf(stretch);
  const last = before?.results.at(-1);
  const from = last ? last.begin_ns / 1e6 : stretch.from;
  const answer = await askResults(name, { from, until: stretch.until }, step, signal);
  const begins = stretch.from * 1e6;
  const known = (before?.results ?? []).filter((it) => it.begin_ns >= begins && it !== last);
  const results = answer.results.length > 0 || !last ? answer.results : [last];
  return { stretch, results: [...known, ...results], step: answer.step_s ?? 1 };
}
