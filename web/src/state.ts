/** How tasks and probes do, in words. */

import { isBrief, now, type Brief, type ClockOffset, type SyncStatus, type PathResult, type Probe, type Recent, type Result, type Task } from './api';
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

/** Whether another program reports what passes there. */
const isForeign = (end: string): boolean => end.startsWith('ipfix:');

export function stateOf(task: Task, probes: Probe[] | null, last: Pick<Result, 'begin_ns'> | undefined): State {
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
    .filter((end) => !isForeign(end))
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
  if (health.clock_offsets.some((it) => it.contradicts)) {
    return { mood: 'bad', word: 'its clock or another is worse than it says' };
  }
  if (health.captures.some((it) => it.lost > 0)) {
    return { mood: 'warning', word: 'lost packets while it captured' };
  }
  if (health.clock_error_ns === null) return { mood: 'warning', word: 'clock not synchronised' };
  if (health.clock_error_ns > BAD_CLOCK) {
    return { mood: 'warning', word: `clock off by up to ${time(health.clock_error_ns)}` };
  }
  return { mood: 'good', word: 'does well' };
}

/** What one who keeps a clock says of it, as `chrony, GPS, stratum 1, ± 12 us`. */
export function wordsOf(status: SyncStatus): string {
  const error = status.error_ns === null ? 'not on UTC' : `\u00b1 ${time(status.error_ns)}`;
  const stratum = status.stratum === null ? null : `stratum ${status.stratum}`;
  return [status.by, status.source, stratum, error].filter((it) => it !== null).join(', ');
}

/** Two clocks that were compared. */
export interface Compared extends ClockOffset {
  from: string;
  to: string;
}

/** What test packets between the probes of a task tell of their clocks, of whatever task they are. */
export function comparedOf(task: Task, probes: Probe[], tasks: Task[]): Compared | null {
  if (!task.from || !task.to) return null;
  const ends = [task.from, task.to].map(probeOf).sort().join(' ');
  const all = probes.filter((it) => !it.until).flatMap((probe) => compared(probe, tasks));
  const theirs = all.filter((it) => [it.from, it.to].sort().join(' ') === ends);
  return theirs.sort((one, other) => other.at_ns - one.at_ns)[0] ?? null;
}

/** The clocks that a probe has compared its own with. */
export function compared(probe: Probe, tasks: Task[]): Compared[] {
  return (probe.health?.clock_offsets ?? []).flatMap((offset) => {
    const test = tasks.find((it) => it.number === offset.task);
    return test?.from && test.to && probeOf(test.from) === probe.name
      ? [{ ...offset, from: probe.name, to: probeOf(test.to) }]
      : [];
  });
}

/** How far two clocks are apart, and what they claim. */
export function apart({ from, to, ahead_ns, bound_ns, claimed_ns }: Compared): string {
  const claims = claimed_ns.map((it) => (it === null ? 'nothing' : `\u00b1 ${time(it)}`));
  return (
    `the clocks of ${from} and ${to} are apart by ${time(Math.abs(ahead_ns))} \u00b1 ${time(bound_ns)}, ` +
    `although they claim ${claims.join(' and ')}`
  );
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

/** Why it is not known what a call would sound like. */
export function whyNoOpinion(task: Task, reason: string): string {
  if (reason === 'not-synchronised') return 'the delay is not known';
  if (reason === 'contradicts-the-clocks') return 'a clock is worse than it says';
  if (reason === 'codec') return `packets were lost, and nobody has published what that does to ${task.codec}`;
  return 'no packet was seen at both points';
}

/** The share of packets that were lost, of those of which it is known; null if it is of none. */
export function lossOf(result: Pick<PathResult, 'matched' | 'lost'>): number | null {
  const known = result.matched + result.lost;
  return known > 0 ? result.lost / known : null;
}

/** The share that was lost of what all results tell of. */
export function lossOfAll(results: Recent[]): number | null {
  const ofPath = results.filter(isBrief);
  return lossOf({ matched: sum(ofPath, (it) => it.matched), lost: sum(ofPath, (it) => it.lost ?? 0) });
}

/** The newest result that tells of a delay. */
export function latestDelay(results: Recent[]): Brief | undefined {
  return results.findLast((it): it is Brief => isBrief(it) && delayOf(it) !== null);
}

/** What a result tells of the delay, if anything: by the clocks, or else above the least. */
export function delayOf(result: Brief): number | null {
  return result.delay_mean_ns ?? result.above_minimum_mean_ns ?? null;
}

/** The same in words. */
export function delayIn(result: Brief): string {
  return result.delay_mean_ns === undefined
    ? `+${time(result.above_minimum_mean_ns ?? 0)}`
    : time(result.delay_mean_ns);
}
