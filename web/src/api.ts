/** What the controller answers, and how it is asked. Times are in nanoseconds if their names say so. */

export interface Me {
  name: string;
  role: string;
}

export interface Schedule {
  start?: string;
  for?: string;
  every?: string;
  until?: string;
}

export interface Task {
  number: number;
  name: string;
  measure: string;
  at?: string;
  from?: string;
  to?: string;
  filter?: string;
  share?: number;
  /** Of the calls that the path is judged by. */
  codec?: string;
  schedule?: Schedule;
  made: string;
  ended: string | null;
}

/** Synchronisation of a clock as one clock source reports it. */
export interface SyncStatus {
  by: string;
  source: string | null;
  stratum: number | null;
  ahead_ns: number;
  /** Null if the clock is not on UTC. */
  error_ns: number | null;
}

/** How far the clock of the probe that reflects the packets of a task is ahead of the sender's. */
export interface ClockOffset {
  task: number;
  at_ns: number;
  ahead_ns: number;
  bound_ns: number;
  claimed_ns: [number | null, number | null];
  contradicts: boolean;
}

export interface Health {
  version: string;
  clock: string;
  clock_error_ns: number | null;
  processor_time_ns: number;
  memory_bytes: number;
  held_bytes: number;
  captures: { interface: string; packets: number; lost: number }[];
  troubles: { task: number; why: string }[];
  keepers: SyncStatus[];
  clock_offsets: ClockOffset[];
  /** What its ends of active tests have refused. */
  tests: { task: number; end: 'sender' | 'reflector'; forged: number; too_short: number }[];
}


export interface Probe {
  name: string;
  address: string;
  since: string;
  heard: string;
  until: string | null;
  health: Health | null;
}

/** How values are distributed. Percentiles are known of what was added up where all of it is in histograms. */
export interface Summary {
  count: number;
  min: number;
  mean: number;
  stddev: number;
  p50: number | null;
  p90: number | null;
  p99: number | null;
  p999: number | null;
  max: number;
}

/** What became of the packets of a path in a stretch of time. */
export interface PathResult {
  begin_ns: number;
  sent: number;
  received: number;
  matched: number;
  lost: number;
  duplicated: number;
  reordered: number;
  unexpected: number;
  given_up_sent: number;
  given_up_received: number;
  identical: number;
  delay_ns: Summary | null;
  above_minimum_ns: Summary | null;
  variation_ns: Summary | null;
  error_ns: number | null;
  not_synchronised: string | null;
  contradicts_the_clocks: boolean;
  /** Where the task names a codec there is either this or why not. */
  mos?: number;
  no_mos?: string;
}

/** A result of a path in a few numbers. What is not known, and nothing, is not there. */
export interface Brief {
  begin_ns: number;
  matched: number;
  lost?: number;
  delay_mean_ns?: number;
  /** Where that is not known. */
  above_minimum_mean_ns?: number;
  error_ns?: number;
  contradicts_the_clocks?: boolean;
}

/** What passed a point in a stretch of time. */
export interface PointResult {
  begin_ns: number;
  packets: number;
  bytes: number;
  missed?: number;
  /** For how much of the time somebody looked. */
  watched_ns?: number;
}

export type Result = PathResult | PointResult;
export type Recent = Brief | PointResult;

/** How a flow has fared so far: some of the keys that `wirestamp flows --json` has. What is not known is null. */
export interface Flow {
  src: string;
  sport: number;
  dst: string;
  dport: number;
  protocol: number;
  packets: number;
  bytes: number;
  first_ns: number;
  last_ns: number;
  throughput_bps: number | null;
  lost: number | null;
  /** Of RTP. */
  ssrc?: number;
  codec?: string | null;
  jitter_ms?: number | null;
  mos?: number | null;
}

export interface Results {
  task: Task;
  results: Result[];
  /** Seconds of each of them. */
  step_s?: number;
}

/** So many delays from one bound on and below another, in nanoseconds. */
export interface Bucket {
  from: number;
  until: number;
  count: number;
}

/** What the controller does not do, in its own words. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    why: string,
  ) {
    super(why);
  }
}

/** How far the controller's clock is ahead of the browser's, in milliseconds: it tells whole seconds only. */
let ahead = 0;
const WHOLE_SECONDS = 2000;

/** The time at the controller, in milliseconds since 1970. */
export function now(): number {
  return Date.now() + ahead;
}

async function call(path: string, init?: RequestInit): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(`api/v1/${path}`, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Refused(0, 'the controller does not answer');
  }
  const told = Date.parse(answer.headers.get('date') ?? '') - Date.now();
  ahead = Math.abs(told) > WHOLE_SECONDS ? told : 0;
  if (!answer.ok) {
    const said = (await answer.json().catch(() => ({}))) as { error?: string };
    throw new Refused(answer.status, said.error ?? `the controller answers with ${answer.status}`);
  }
  return answer;
}

async function ask<T>(path: string, signal?: AbortSignal): Promise<T> {
  const answer = await call(path, signal ? { signal } : {});
  return (await answer.json()) as T;
}

export const askMe = (): Promise<Me> => ask('me');
export const askTasks = (): Promise<Task[]> => ask('tasks');
export const askProbes = (): Promise<Probe[]> => ask('probes');

/** A stretch of time, in milliseconds since 1970. */
export interface Stretch {
  from: number;
  until: number;
}

const asked = ({ from, until }: Stretch): string =>
  `from=${new Date(from).toISOString()}&until=${new Date(until).toISOString()}`;

/** Results that a chart can show: of one second each, or less of them that stand for more. */
const MOST = 4000;
const STEPS = [1, 60, 3600];

/** As many as the controller gives at once. */
const LIMIT = 100_000;

/** Whether this controller adds results up. */
let addsUp = true;

export function stepOf({ from, until }: Stretch): number {
  return STEPS.find((step) => (until - from) / 1000 / step <= MOST) ?? 3600;
}

export async function askResults(name: string, stretch: Stretch, step: number, signal?: AbortSignal): Promise<Results> {
  const path = `tasks/${name}/results?${asked(stretch)}&limit=${LIMIT}`;
  if (!addsUp || step === 1) return ask(path, signal);
  try {
    return await ask(`${path}&step=${step}`, signal);
  } catch (error) {
    if (!(error instanceof Refused && error.status === 400)) throw error;
    addsUp = false;
    return ask(path, signal);
  }
}

/** The newest results of all tasks from a time on, by the numbers of the tasks. */
export async function askRecent(from: number): Promise<[number, Recent[]][]> {
  const { results } = await ask<{ results: Record<string, Recent[]> }>(`results?from=${new Date(from).toISOString()}`);
  return Object.entries(results).map(([number, newest]) => [Number(number), newest]);
}

/** So many flows are shown. */
export const MOST_FLOWS = 500;

/** The flows that had their latest packet in a stretch of time, those that had it last first. */
export async function askFlows(name: string, stretch: Stretch, signal?: AbortSignal): Promise<Flow[]> {
  const path = `tasks/${name}/results?${asked(stretch)}&limit=${MOST_FLOWS}`;
  return (await ask<{ results: Flow[] }>(path, signal)).results;
}

/** The histogram of the delays, or null where the controller makes none. */
export async function askHistogram(name: string, stretch: Stretch, signal?: AbortSignal): Promise<Bucket[] | null> {
  try {
    const path = `tasks/${name}/histogram?${asked(stretch)}`;
    return (await ask<{ delay_ns: Bucket[] }>(path, signal)).delay_ns;
  } catch (error) {
    if (error instanceof Refused && (error.status === 404 || error.status === 400)) return null;
    throw error;
  }
}

export async function enterTask(name: string, task: object): Promise<void> {
  const headers = { 'Content-Type': 'application/json' };
  const path = `tasks/${encodeURIComponent(name)}`;
  await call(path, { method: 'PUT', headers, body: JSON.stringify(task) });
}

export async function endTask(name: string): Promise<void> {
  await call(`tasks/${name}`, { method: 'DELETE' });
}

export function isOfPath(result: Result): result is PathResult {
  return 'sent' in result;
}

export function isBrief(result: Recent): result is Brief {
  return 'matched' in result;
}
