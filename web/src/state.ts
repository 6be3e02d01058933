/** States of tasks and probes, in words. */

import { isBrief, now, type PathSummary, type ClockOffset, type SyncStatus, type PathResult, type Probe, type Recent, type Result, type Task } from './api';
import { sum } from './series';
import { clock, lasting, share, time } from './units';

/** Severity of a state, shown by a symbol and a colour. */
export type Mood = 'good' | 'warning' | 'bad' | 'idle';

export interface State {
  mood: Mood;
  word: string;
  why?: string;
}

/** Max delay of results after their packets, in milliseconds. */
const QUIET = 20_000;

export function endsOf(task: Task): string[] {
  return [task.at, task.from, task.to].filter((it) => it !== undefined);
}

/** The probe of a point, PROBE/INTERFACE, or of an end of an active test, PROBE@NAMESPACE. */
export const probeOf = (end: string): string => end.split(/[/@]/)[0] ?? end;

/** Whether another program reports this point. */
const isForeign = (end: string): boolean => end.startsWith('ipfix:');

/** Time range of the loss in a state, in milliseconds. */
const LOSS_RANGE = 180_000;

/** Loss ratios of a warning (the highest of a good network, ITU-T Y.1541), and of bad voice (ITU-T G.1010). */
const SOME_LOSS = 0.001;
const HIGH_LOSS = 0.03;

/** The state of a task. `error`: why its results cannot be read. */
export function stateOf(task: Task, probes: Probe[] | null, results: (Recent | Result)[], error: string | null): State {
  const last = results.at(-1);
  if (task.ended) return { mood: 'idle', word: `ended ${clock(Date.parse(task.ended), false)}` };
  const { start, until } = task.schedule ?? {};
  if (until && Date.parse(until) <= now()) return { mood: 'idle', word: 'schedule ended' };
  if (start && Date.parse(start) > now()) {
    return { mood: 'idle', word: `scheduled for ${clock(Date.parse(start), false)}` };
  }
  for (const probe of probes ?? []) {
    const trouble = probe.health?.troubles.find((it) => it.task === task.number);
    if (trouble && !probe.until) {
      return { mood: 'bad', word: `problem at ${probe.name}`, why: trouble.why };
    }
  }
  if (error !== null) return { mood: 'bad', word: 'results not available', why: error };
  const missing = endsOf(task)
    .filter((end) => !isForeign(end))
    .map(probeOf)
    .filter((name) => probes && !probes.some((it) => it.name === name && !it.until));
  if (missing.length > 0) {
    return { mood: 'warning', word: `not connected: ${[...new Set(missing)].join(' and ')}` };
  }
  if (task.measure === 'flows' && !task.schedule?.for) return { mood: 'good', word: 'measuring' };
  const age = last ? now() - last.begin_ns / 1e6 : Infinity;
  if (age < QUIET) return measures(lossOfAll(results.filter((it) => now() - it.begin_ns / 1e6 < LOSS_RANGE)));
  if (task.schedule?.for) return { mood: 'idle', word: 'paused by the schedule' };
  const word = last ? `no packets for ${lasting(age / 1000)}` : 'no packets yet';
  return { mood: 'idle', word };
}

function measures(loss: number | null): State {
  if (loss === null || loss < SOME_LOSS) return { mood: 'good', word: 'measuring' };
  const why = `lost packets of the last ${lasting(LOSS_RANGE / 1000)}`;
  return { mood: loss < HIGH_LOSS ? 'warning' : 'bad', word: `${share(loss)} lost`, why };
}

/** Min error of a bad clock, in nanoseconds: delays are in milliseconds. */
const BAD_CLOCK = 1e6;

/** How long a refused probe is shown, in milliseconds. It tries again more often. */
const REFUSED_RANGE = 300_000;

/** State of a probe: its most severe problem. */
export function stateOfProbe(probe: Probe): State {
  if (probe.until) {
    return { mood: 'bad', word: `disconnected since ${clock(Date.parse(probe.until))}` };
  }
  const { health, refused_at: refused } = probe;
  if (!health) return { mood: 'idle', word: 'connected, no status yet' };
  if (health.troubles.length > 0) return { mood: 'bad', word: 'some tasks fail' };
  if (refused && now() - Date.parse(refused) < REFUSED_RANGE) {
    return { mood: 'bad', word: 'another probe has the same certificate', why: `refused: ${probe.refused}` };
  }
  if (health.clock_offsets.some((it) => it.contradicts)) {
    return { mood: 'bad', word: 'this clock or another exceeds its error bound' };
  }
  if (health.captures.some((it) => it.lost > 0)) {
    return { mood: 'warning', word: 'capture lost packets' };
  }
  if (health.clock_error_ns === null) return { mood: 'warning', word: 'clock not synchronised' };
  if (health.clock_error_ns > BAD_CLOCK) {
    return { mood: 'warning', word: `clock error up to ${time(health.clock_error_ns)}` };
  }
  return { mood: 'good', word: 'ok' };
}

/** Sync status in words, such as `chrony, GPS, stratum 1, ± 12 us`. */
export function wordsOf(status: SyncStatus): string {
  const error = status.error_ns === null ? 'not synchronised to UTC' : `\u00b1 ${time(status.error_ns)}`;
  const stratum = status.stratum === null ? null : `stratum ${status.stratum}`;
  return [status.by, status.source, stratum, error].filter((it) => it !== null).join(', ');
}

/** Two clocks that were compared. */
export interface ComparedClocks extends ClockOffset {
  from: string;
  to: string;
}

/** The newest clock offset between the probes of a task, from any active test. */
export function comparedOf(task: Task, probes: Probe[], tasks: Task[]): ComparedClocks | null {
  if (!task.from || !task.to) return null;
  const ends = [task.from, task.to].map(probeOf).sort().join(' ');
  const all = probes.filter((it) => !it.until).flatMap((probe) => compared(probe, tasks));
  const theirs = all.filter((it) => [it.from, it.to].sort().join(' ') === ends);
  return theirs.sort((one, other) => other.at_ns - one.at_ns)[0] ?? null;
}

/** The clock offsets measured by a probe. */
export function compared(probe: Probe, tasks: Task[]): ComparedClocks[] {
  return (probe.health?.clock_offsets ?? []).flatMap((offset) => {
    const test = tasks.find((it) => it.number === offset.task);
    return test?.from && test.to && probeOf(test.from) === probe.name
      ? [{ ...offset, from: probe.name, to: probeOf(test.to) }]
      : [];
  });
}

/** Offset of two clocks and their error bounds, in words. */
export function apart({ from, to, ahead_ns, bound_ns, claimed_ns }: ComparedClocks): string {
  const claims = claimed_ns.map((it) => (it === null ? 'unknown' : `\u00b1 ${time(it)}`));
  return (
    `the clocks of ${from} and ${to} differ by ${time(Math.abs(ahead_ns))} \u00b1 ${time(bound_ns)}, ` +
    `but their error bounds are ${claims.join(' and ')}`
  );
}

/** Why there is no one-way delay, for the ends of a task. */
export function whyNoDelay(task: Task, reason: string | null): string {
  const keeps = (end: string | undefined): string =>
    `the clock of ${end ? probeOf(end) : 'a machine'} is not synchronised to UTC`;
  if (reason === 'first') return keeps(task.from);
  if (reason === 'second') return keeps(task.to);
  if (reason === 'unknown') return 'the sync status of the clocks is unknown';
  return 'no packet was observed at both points';
}

/** The reason for a missing MOS. */
export function whyNoMos(task: Task, reason: string): string {
  if (reason === 'not-synchronised') return 'the delay is not known';
  if (reason === 'contradicts-the-clocks') return 'a clock exceeds its error bound';
  if (reason === 'codec') return `packets were lost, and no packet-loss robustness is published for ${task.codec}`;
  return 'no packet was observed at both points';
}

/** Loss ratio: lost / (matched + lost); null without packets. */
export function lossOf(result: Pick<PathResult, 'matched' | 'lost'>): number | null {
  const known = result.matched + result.lost;
  return known > 0 ? result.lost / known : null;
}

/** Loss ratio over all results. */
export function lossOfAll(results: (Recent | Result)[]): number | null {
  const ofPath = results.filter((it): it is PathSummary | PathResult => 'matched' in it);
  return lossOf({ matched: sum(ofPath, (it) => it.matched), lost: sum(ofPath, (it) => it.lost ?? 0) });
}

/** The newest result with a delay. */
export function latestDelay(results: Recent[]): PathSummary | undefined {
  return results.findLast((it): it is PathSummary => isBrief(it) && delayOf(it) !== null);
}

/** The mean delay, or else the mean above the minimum; null without both. */
export function delayOf(result: PathSummary): number | null {
  return result.delay_mean_ns ?? result.above_minimum_mean_ns ?? null;
}

/** The same in words. */
export function delayIn(result: PathSummary): string {
  return result.delay_mean_ns === undefined
    ? `+${time(result.above_minimum_mean_ns ?? 0)}`
    : time(result.delay_mean_ns);
}
