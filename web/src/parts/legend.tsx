/** Legend of a chart, with the values at the cursor. */

import type { Column } from '../series';
import { clock, type Format } from '../units';
import type { Line } from './chart';

interface Props {
  lines: Line[];
  columns: Column[];
  /** Index of the values; null if there are none. */
  at: number | null;
  isChosen: boolean;
  format: Format;
}

export function Legend({ lines, columns, at, isChosen, format }: Props) {
  const when = at === null ? null : columns[0]?.[at];
  return (
    <ul class="legend" aria-live={isChosen ? 'polite' : 'off'}>
      {lines.map((line, index) => {
        if (line.isBound) return null;
        const value = at === null ? null : columns[index + 1]?.[at];
        return (
          <li key={line.label}>
            <Swatch line={line} />
            {line.label} <b>{value == null ? 'none' : format(value)}</b>
          </li>
        );
      })}
      {when != null && <li class="when">{clock(when * 1000)}</li>}
    </ul>
  );
}

function Swatch({ line }: { line: Line }) {
  return (
    <svg class="swatch" width="24" height="10" aria-hidden="true">
      {line.isFilled && <rect y="3" width="24" height="7" fill={`var(--${line.colour})`} opacity="0.25" />}
      <line
        x1="0"
        x2="24"
        y1={line.isFilled ? 3 : 5}
        y2={line.isFilled ? 3 : 5}
        stroke={`var(--${line.colour})`}
        stroke-width={line.width ?? 1.5}
        stroke-dasharray={line.dash?.join(' ')}
      />
    </svg>
  );
}
