/** Histogram of delays. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { fetchHistogram, type Bucket, type TimeRange } from '../api';
import { count, time } from '../units';

/** In units of the drawing. */
const WIDTH = 600;
const HEIGHT = 150;

/** Reload interval, in milliseconds. */
const OFTEN = 10_000;

/** Ratio of the largest to the smallest delay from which the scale is logarithmic. */
const WIDE = 30;

/** Reloaded for another time range, and at intervals for the newest range. */
function useHistogram(name: string, stretch: TimeRange): Bucket[] | null {
  const [found, show] = useState<Bucket[] | null>(null);
  const length = Math.round(stretch.until - stretch.from);
  const moved = Math.floor(stretch.until / OFTEN);
  const hasNone = useRef(false);
  useEffect(() => {
    if (hasNone.current) return undefined;
    const abort = new AbortController();
    // Errors are shown with the results.
    fetchHistogram(name, stretch, abort.signal).then(
      (buckets) => {
        hasNone.current = buckets === null;
        show(buckets);
      },
      () => undefined,
    );
    return () => abort.abort();
  }, [name, length, moved]);
  return found;
}

export function Histogram({ name, stretch }: { name: string; stretch: TimeRange }) {
  const buckets = (useHistogram(name, stretch) ?? []).filter((it) => it.count > 0);
  const [first, last] = [buckets[0], buckets.at(-1)];
  if (!first || !last) return null;
  const isWide = first.from > 0 && last.until / first.from > WIDE;
  const scale = isWide ? Math.log : (value: number): number => value;
  const [min, max] = [scale(first.from), scale(last.until)];
  const x = (value: number): number => ((scale(value) - min) / (max - min || 1)) * WIDTH;
  // Bars have different widths: their areas are proportional to the counts.
  const dense = (it: Bucket): number => it.count / Math.max(x(it.until) - x(it.from), 0.01);
  const densest = Math.max(...buckets.map(dense));
  const total = buckets.reduce((sum, it) => sum + it.count, 0);
  return (
    <section class="panel">
      <h2>Delay histogram</h2>
      <svg
        class="histogram"
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Delays of ${count(total)} packets, from ${time(first.from)} to ${time(last.until)}`}
      >
        {buckets.map((it) => {
          const height = (dense(it) / densest) * HEIGHT;
          const [left, width] = [x(it.from), Math.max(x(it.until) - x(it.from), 0.7)];
          return (
            <rect key={it.from} x={left} width={width} y={HEIGHT - height} height={height}>
              <title>{`${time(it.from)} to ${time(it.until)}: ${count(it.count)} packets`}</title>
            </rect>
          );
        })}
      </svg>
      <p class="ends">
        <span>{time(first.from)}</span>
        <span>{isWide ? 'logarithmic scale' : `${count(total)} packets`}</span>
        <span>{time(last.until)}</span>
      </p>
    </section>
  );
}
