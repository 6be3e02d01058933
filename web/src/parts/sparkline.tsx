/** Small chart of the last minutes. */

interface Props {
  /** Times in seconds, and values. */
  points: [number, number][];
  /** The times of the left and the right end. */
  from: number;
  until: number;
}

const WIDTH = 120;
const HEIGHT = 26;
const ROOM = 3;

export function Sparkline({ points, from, until }: Props) {
  const values = points.map(([, value]) => value);
  const [min, max] = [Math.min(...values), Math.max(...values)];
  const x = (at: number): number => ((at - from) / (until - from)) * WIDTH;
  const y = (value: number): number =>
    max > min ? ROOM + ((max - value) / (max - min)) * (HEIGHT - 2 * ROOM) : HEIGHT / 2;
  const path = points.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`);
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
      {points.length > 1 && <polyline points={path.join(' ')} />}
    </svg>
  );
}
