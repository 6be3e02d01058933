/** How often which delay was. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { askHistogram, type Bucket, type Stretch } from '../api';
import { count, time } from '../units';

/** In units of the drawing. */
const WIDTH = 600;
const HEIGHT = 150;

/** How often it is asked for while results come, in milliseconds. */
const OFTEN = 10_000;

/** Where delays are this many times apart, equal steps show factors. */
const WIDE = 30;

/** Asked for anew where another stretch is looked at, and where the same one has moved on by a while. */
function useHistogram(name: string, stretch: Stretch): Bucket[] | null {
  const [found, show] = useState<Bucket[] | null>(null);
  const length = Math.round(stretch.until - stretch.from);
  const moved = Math.floor(stretch.until / OFTEN);
  const hasNone = useRef(false);
  useEffect(() => {
    if (hasNone.current) return undefined;
    const abort = new AbortController();
    // What goes wrong is told where the results are.
    askHistogram(name, stretch, abort.signal).then(
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

export function Histogram({ name, stretch }: { name: string; stretch: Stretch }) {
  const buckets = (useHistogram(name, stretch) ?? []).filter((it) => it.count > 0);
  const [first, last] = [buckets[0], buckets.at(-1)];
  if (!first || !last) return null;
  const isWide = first.from > 0 && last.until / first.from > WIDE;
  const scale = isWide ? Math.log : (value: number): number => value;
  const [least, most] = [scale(first.from), scale(last.until)];
  const x = (value: number): number => ((scale(value) - least) / (most - least || 1)) * WIDTH;
  // Bars of different widths: their areas are their counts.
  const dense = (it: Bucket): number => it.count / Math.max(x(it.until) - x(it.from), 0.01);
  const densest = Math.max(...buckets.map(dense));
  const total = buckets.reduce((sum, it) => sum + it.count, 0);
  return (
    <section class="panel">
      <h2>How often which delay was</h2>
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
        <span>{isWide ? 'equal steps are equal factors' : `${count(total)} packets`}</span>
        <span>{time(last.until)}</span>
      </p>
    </section>
  );
}
