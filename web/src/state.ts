/** How tasks and probes do, in words. */

import { isOfPath, now, type PathResult, type Probe, type Result, type Task } from './api';
import { sum } from './series';
import { clock, lasting, time } from './units';

/** What a state is like. It is shown by a sign and a colour, beside the words. */
export type Mood = 'good' | 'warning' | 'bad' | 'idle';

export interface State {
  mood: Mood;
  word: string;
  why?: string;
}

/** Results come some seconds after their packets; later than this, in milliseconds, none come. */
const QUIET = 20_000;

export function endsOf(task: Task): string[] {
  return [task.at, task.from, task.to].filter((it) => it !== undefined);
}

/** Of a point, PROBE/INTERFACE, or of an end of an active test, PROBE@NAMESPACE. */
export const probeOf = (end: string): string => end.split(/[/@]/)[0] ?? end;

export function stateOf(task: Task, probes: Probe[] | null, last: Result | undefined): State {
  if (task.ended) return { mood: 'idle', word: `ended ${clock(Date.parse(task.ended), false)}` };
  const { start, until } = task.schedule ?? {};
  if (until && Date.parse(until) <= now()) return { mood: 'idle', word: 'over' };
  if (start && Date.parse(start) > now()) {
    return { mood: 'idle', word: `waits until ${clock(Date.parse(start), false)}` };
  }
  for (const probe of probes ?? []) {
    const trouble = probe.health?.troubles.find((it) => it.task === task.number);
    if (trouble && !probe.until) {
      return { mood: 'bad', word: `trouble at ${probe.name}`, why: trouble.why };
    }
  }
  const missing = endsOf(task)
    .map(probeOf)
    .filter((name) => probes && !probes.some((it) => it.name === name && !it.until));
  if (missing.length > 0) {
    return { mood: 'warning', word: `waits for ${[...new Set(missing)].join(' and ')}` };
  }
  if (task.measure === 'flows' && !task.schedule?.for) return { mood: 'good', word: 'follows flows' };
  const age = last ? now() - last.begin_ns / 1e6 : Infinity;
  if (age < QUIET) return { mood: 'good', word: 'measures' };
  if (task.schedule?.for) return { mood: 'idle', word: 'pauses' };
  const word = last ? `no packets for ${lasting(age / 1000)}` : 'no packets yet';
  return { mood: 'idle', word };
}

/** From when on a clock is called bad, in nanoseconds of what it may be off: delays are of milliseconds. */
const BAD_CLOCK = 1e6;

/** How a probe does: the worst of all, and the others behind it. */
export function stateOfProbe(probe: Probe): State {
  if (probe.until) {
    return { mood: 'bad', word: `gone since ${clock(Date.parse(probe.until))}` };
  }
  const { health } = probe;
  if (!health) return { mood: 'idle', word: 'has come, and said nothing yet' };
  if (health.troubles.length > 0) return { mood: 'bad', word: 'cannot do all it should' };
  if (health.captures.some((it) => it.lost > 0)) {
    return { mood: 'warning', word: 'lost packets while it captured' };
  }
  if (health.clock_error_ns === null) return { mood: 'warning', word: 'clock not synchronised' };
  if (health.clock_error_ns > BAD_CLOCK) {
    return { mood: 'warning', word: `clock off by up to ${time(health.clock_error_ns)}` };
  }
  return { mood: 'good', word: 'does well' };
}

/** Why there is no one-way delay, for the ends of a task. */
export function whyNoDelay(task: Task, reason: string | null): string {
  const keeps = (end: string | undefined): string =>
    `nobody keeps the clock of ${end ? probeOf(end) : 'a machine'} on UTC`;
  if (reason === 'first') return keeps(task.from);
  if (reason === 'second') return keeps(task.to);
  if (reason === 'unknown') return 'nothing is known of the clocks';
  return 'no packet was seen at both points';
}

/** The share of packets that were lost, of those of which it is known; null if it is of none. */
export function lossOf(result: Pick<PathResult, 'matched' | 'lost'>): number | null {
  const known = result.matched + result.lost;
  return known > 0 ? result.lost / known : null;
}

/** The share that was lost of what all results tell of. */
export function lossOfAll(results: Result[]): number | null {
  const ofPath = results.filter(isOfPath);
  return lossOf({ matched: sum(ofPath, (it) => it.matched), lost: sum(ofPath, (it) => it.lost) });
}

/** The newest result that tells of a delay. */
export function latestDelay(results: Result[]): PathResult | undefined {
  return results.findLast((it): it is PathResult => isOfPath(it) && it.above_minimum_ns !== null);
}
