/** Results as the columns of a chart. */

import type { Result } from './api';

export type Column = (number | null)[];

/** A gap is drawn after this many steps without results, but at least this many seconds. */
const STEPS = 2.5;
const SECONDS = 10;

/** A column with the time of each result in seconds, and one column per function of `values`. */
export function columns<R extends Result>(
  results: R[],
  step: number,
  values: ((result: R) => number | null)[],
): Column[] {
  const columns: Column[] = [[], ...values.map((): Column => [])];
  const add = (at: number, of: (value: (result: R) => number | null) => number | null): void => {
    columns[0]?.push(at);
    values.forEach((value, index) => columns[index + 1]?.push(of(value)));
  };
  const gap = Math.max(STEPS * step, SECONDS);
  let last = Infinity;
  for (const result of results) {
    const at = result.begin_ns / 1e9;
    if (at - last > gap) add(last + step, () => null);
    add(at, (value) => value(result));
    last = at;
  }
  return columns;
}

/** The sum of a count over results. */
export function sum<R>(results: R[], of: (result: R) => number): number {
  return results.reduce((total, result) => total + of(result), 0);
}
