/** The controller's API: types and requests. Times are in nanoseconds where the name ends in `_ns`. */

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
  /** Codec of the MOS. */
  codec?: string;
  /** Parts by flow; absent for one. */
  shards?: number;
  archive?: string;
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
  /** Null if the clock is not synchronised to UTC. */
  error_ns: number | null;
}

/** Offset of the reflecting probe's clock from the sender's; positive if it is ahead. */
export interface ClockOffset {
  task: number;
  at_ns: number;
  ahead_ns: number;
  bound_ns: number;
  claimed_ns: [number | null, number | null];
  contradicts: boolean;
}

export interface TestCounts {
  task: number;
  end: 'sender' | 'reflector';
  forged: number;
  too_short: number;
  /** Absent at older controllers, as `limited`. */
  answers?: number;
  limited?: number;
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
  /** Datagrams of active tests that were rejected, or not answered. */
  tests: TestCounts[];
}


export interface Probe {
  name: string;
  address: string;
  since: string;
  heard: string;
  until: string | null;
  health: Health | null;
  /** Address of the last other probe with the same certificate, which was refused. */
  refused: string | null;
  /** Absent at older controllers. */
  refused_at?: string | null;
}

/** Distribution of values. Merged results have percentiles only if all parts have histograms. */
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

/** Answers of an active test for one interval. Packets that reached the reflector are answered, lost or undetermined. */
export interface ReturnPath {
  answered: number;
  lost: number;
  undetermined: number;
  /** Without the time at the reflector. */
  round_trip_ns: Summary | null;
  round_trip_error_ns: number | null;
  /** From the reflector to the sender. */
  delay_ns: Summary | null;
  error_ns: number | null;
  /** Why there are no times, and why their errors are not known. */
  no_times?: string;
  no_error?: string;
  contradicts_the_clocks: boolean;
}

/** Result of a path for one interval. */
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
  /** Of a task with shards: lost and unexpected packets are lower bounds, undetermined ones upper bounds. */
  counts_are_bounds?: boolean;
  /** If the task has a codec: the MOS, or the reason why there is none. */
  mos?: number;
  no_mos?: string;
  /** Of an active test: the answers, or the reason why they are not known. */
  return_path?: ReturnPath;
  no_return_path?: string;
}

/** Short result of a path. Unknown values and zeros are omitted. */
export interface PathSummary {
  begin_ns: number;
  matched: number;
  lost?: number;
  delay_mean_ns?: number;
  /** Instead of `delay_mean_ns`, if that is unknown. */
  above_minimum_mean_ns?: number;
  error_ns?: number;
  contradicts_the_clocks?: boolean;
}

/** Result of a point for one interval. */
export interface PointResult {
  begin_ns: number;
  packets: number;
  bytes: number;
  missed?: number;
  /** Observed time in the interval. */
  watched_ns?: number;
}

export type Result = PathResult | PointResult;
export type Recent = PathSummary | PointResult;

/** Result of a flow so far: some keys of `wirestamp flows --json`. Unknown values are null. */
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
  /** RTP only. */
  ssrc?: number;
  codec?: string | null;
  jitter_ms?: number | null;
  mos?: number | null;
}

export interface Results {
  task: Task;
  results: Result[];
  /** Seconds per result. */
  step_s?: number;
  /** Collectors that do not answer. */
  partial?: MissingPart[];
}

/** A collector that the task had or has, and whose results are missing. */
export interface MissingPart {
  collector: string;
  /** End of its results; null if it has the task now. */
  until_ns: number | null;
}

/** Number of delays in a range: `from` inclusive, `until` exclusive, in nanoseconds. */
export interface Bucket {
  from: number;
  until: number;
  count: number;
}

/** An error reported by the controller. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    why: string,
  ) {
    super(why);
  }
}

/** Offset of the controller's clock from the browser's, in milliseconds; known to whole seconds only. */
let ahead = 0;
const MAX_ROUNDING = 2000;

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
    throw new ApiError(0, 'the controller does not answer');
  }
  const offset = Date.parse(answer.headers.get('date') ?? '') - Date.now();
  ahead = Math.abs(offset) > MAX_ROUNDING ? offset : 0;
  if (!answer.ok) {
    const body = (await answer.json().catch(() => ({}))) as { error?: string };
    throw new ApiError(answer.status, body.error ?? `the controller answers with ${answer.status}`);
  }
  return answer;
}

async function ask<T>(path: string, signal?: AbortSignal): Promise<T> {
  const answer = await call(path, signal ? { signal } : {});
  return (await answer.json()) as T;
}

export const fetchMe = (): Promise<Me> => ask('me');
export const fetchTasks = (): Promise<Task[]> => ask('tasks');
export const fetchProbes = (): Promise<Probe[]> => ask('probes');

/** A time range, in milliseconds since 1970. */
export interface TimeRange {
  from: number;
  until: number;
}

const asked = ({ from, until }: TimeRange): string =>
  `from=${new Date(from).toISOString()}&until=${new Date(until).toISOString()}`;

/** Max results of a chart, and the steps in seconds to merge them. */
const MAX_RESULTS = 4000;
const STEPS = [1, 60, 3600];

/** Max results of one response. */
const LIMIT = 100_000;

/** Whether this controller merges results (`step`). */
let hasSteps = true;

export function stepOf({ from, until }: TimeRange): number {
  return STEPS.find((step) => (until - from) / 1000 / step <= MAX_RESULTS) ?? 3600;
}

export async function fetchResults(name: string, stretch: TimeRange, step: number, signal?: AbortSignal): Promise<Results> {
  const path = `tasks/${name}/results?${asked(stretch)}&limit=${LIMIT}`;
  if (!hasSteps || step === 1) return ask(path, signal);
  try {
    return await ask(`${path}&step=${step}`, signal);
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 400)) throw error;
    hasSteps = false;
    return ask(path, signal);
  }
}

/** The newest results of all tasks. */
export interface RecentAnswer {
  results: Record<string, Recent[]>;
  /** Collectors that do not answer, with the reason, and their tasks. */
  not_answered?: string[];
  without_results?: number[];
  /** Collectors that cannot store results, with the reason. */
  cannot_store?: string[];
}

export const fetchRecent = (from: number): Promise<RecentAnswer> => ask(`results?from=${new Date(from).toISOString()}`);

/** Max number of shown flows. */
export const MAX_FLOWS = 500;

/** The flows with their last packet in a time range, the newest first. */
export async function fetchFlows(name: string, stretch: TimeRange, signal?: AbortSignal): Promise<Flow[]> {
  const path = `tasks/${name}/results?${asked(stretch)}&limit=${MAX_FLOWS}`;
  return (await ask<{ results: Flow[] }>(path, signal)).results;
}

/** The histogram of the delays; null if the controller has none. */
export async function fetchHistogram(name: string, stretch: TimeRange, signal?: AbortSignal): Promise<Bucket[] | null> {
  try {
    const path = `tasks/${name}/histogram?${asked(stretch)}`;
    return (await ask<{ delay_ns: Bucket[] }>(path, signal)).delay_ns;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 404 || error.status === 400)) return null;
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

/** Removes an ended task with its results. */
export async function removeTask(name: string, number: number): Promise<void> {
  await call(`tasks/${name}/results?number=${number}`, { method: 'DELETE' });
}

export function isOfPath(result: Result): result is PathResult {
  return 'sent' in result;
}

export function isBrief(result: Recent): result is PathSummary {
  return 'matched' in result;
}
