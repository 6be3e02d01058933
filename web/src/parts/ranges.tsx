/** Selection of the time range. */

import { useState } from 'preact/hooks';
import { now, type TimeRange } from '../api';
import type { Range } from '../route';
import { clock, lasting } from '../units';

export const RANGES: { seconds: number; name: string }[] = [
  { seconds: 300, name: '5 min' },
  { seconds: 3600, name: '1 h' },
  { seconds: 21_600, name: '6 h' },
  { seconds: 86_400, name: '24 h' },
];

/** Min time range, in milliseconds. */
const MIN_RANGE = 5000;

/** A time range with the same middle, scaled by a factor. */
export function zoomed({ from, until }: TimeRange, by: number): Range {
  const middle = (from + until) / 2;
  const half = Math.max(((until - from) / 2) * by, MIN_RANGE / 2);
  return { is: 'fixed', from: middle - half, until: Math.min(middle + half, now()) };
}

/** A time range of the same length, moved by a fraction of it. */
export function moved({ from, until }: TimeRange, by: number): Range {
  const far = Math.min((until - from) * by, now() - until);
  return { is: 'fixed', from: from + far, until: until + far };
}

interface Props {
  range: Range;
  stretch: TimeRange;
  onRange: (range: Range) => void;
}

export function Ranges({ range, stretch, onRange }: Props) {
  const [isOwn, setOwn] = useState(false);
  return (
    <div class="ranges">
      <div class="buttons" role="group" aria-label="Time range">
        {RANGES.map(({ seconds, name }) => (
          <button
            key={seconds}
            type="button"
            aria-pressed={range.is === 'last' && range.seconds === seconds}
            onClick={() => onRange({ is: 'last', seconds })}
          >
            {name}
          </button>
        ))}
        <button type="button" aria-expanded={isOwn} aria-pressed={range.is === 'fixed'} onClick={() => setOwn(!isOwn)}>
          custom
        </button>
      </div>
      <div class="buttons" role="group" aria-label="Move and zoom">
        <button
          type="button"
          aria-label="earlier"
          title="earlier (left arrow)"
          onClick={() => onRange(moved(stretch, -0.5))}
        >
          &larr;
        </button>
        <button
          type="button"
          aria-label="later"
          title="later (right arrow)"
          onClick={() => onRange(moved(stretch, 0.5))}
        >
          &rarr;
        </button>
        <button type="button" aria-label="zoom in" title="zoom in (+)" onClick={() => onRange(zoomed(stretch, 0.5))}>
          +
        </button>
        <button type="button" aria-label="zoom out" title="zoom out (-)" onClick={() => onRange(zoomed(stretch, 2))}>
          &minus;
        </button>
      </div>
      <p class="fine stretch">
        {clock(stretch.from)} to {range.is === 'last' ? 'now' : clock(stretch.until)} (
        {lasting((stretch.until - stretch.from) / 1000)})
      </p>
      {isOwn && <Own key={`${range.is}`} stretch={stretch} onRange={onRange} />}
    </div>
  );
}

/** Local time in the format of a `datetime-local` input. */
function local(ms: number): string {
  const at = new Date(ms);
  return new Date(ms - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

function Own({ stretch, onRange }: { stretch: TimeRange; onRange: (range: Range) => void }) {
  const [from, setFrom] = useState(local(stretch.from));
  const [until, setUntil] = useState(local(stretch.until));
  const range: Range = { is: 'fixed', from: Date.parse(from), until: Date.parse(until) };
  const isGood = range.from < range.until;
  return (
    <form
      class="own"
      onSubmit={(event) => {
        event.preventDefault();
        if (isGood) onRange(range);
      }}
    >
      <label>
        from
        <input type="datetime-local" step="1" value={from} onInput={(event) => setFrom(event.currentTarget.value)} />
      </label>
      <label>
        until
        <input type="datetime-local" step="1" value={until} onInput={(event) => setUntil(event.currentTarget.value)} />
      </label>
      <button type="submit" disabled={!isGood}>
        show
      </button>
      {!isGood && <p role="alert">The start must be before the end.</p>}
    </form>
  );
}
