/** Values over time, drawn by uPlot. */

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import type { TimeRange } from '../api';
import type { Column } from '../series';
import { useStore } from '../store';
import { colour, colours } from '../theme';
import { axis, clock, day, type Format } from '../units';
import { Legend } from './legend';

/** Style of a line; never distinguished by colour alone. */
export interface Line {
  label: string;
  /** The name of a custom property. */
  colour: string;
  dash?: number[];
  width?: number;
  /** Drawn as an area from zero. */
  isFilled?: boolean;
  /** A bound of a band; drawn without a line. */
  isBound?: boolean;
}

interface Props {
  title: string;
  lines: Line[];
  /** The time of each result in seconds, and a column for each line. */
  columns: Column[];
  stretch: TimeRange;
  format: Format;
  height?: number;
  /** Whether the axis starts at zero. */
  isFromZero?: boolean;
  /** Whether peaks can be cut off, because they may hide usual values. */
  hasPeaks?: boolean;
  /** The lines between which a band is drawn: the upper and the lower. */
  band?: [number, number];
  onZoom: (stretch: TimeRange) => void;
}

/** Min width of a drag, in pixels; less is a click. */
const DRAG = 6;

const CURSORS = 'task';

/** With peaks cut: share of the shown values, and space above them as a factor. */
const USUAL = 0.98;
const ABOVE = 1.25;

export function Chart(props: Props) {
  const { title, lines, columns, stretch, format, hasPeaks = false, height = 190 } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const [at, setAt] = useState<number | null>(null);
  const [cuts, setCuts] = useState(false);
  const most = useMemo(() => (cuts ? usual(columns) : null), [cuts, columns]);
  const top = useRef<number | null>(null);
  top.current = most;
  const drawnWith = useStore(colours);
  const shape = JSON.stringify([lines, height, drawnWith]);

  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    const drawn = new uPlot(options(latest, top, element.clientWidth, setAt), [[]], element);
    plot.current = drawn;
    fill(drawn, latest.current);
    const observer = new ResizeObserver(() => {
      drawn.setSize({ width: element.clientWidth, height });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      drawn.destroy();
      plot.current = null;
    };
  }, [shape]);

  useEffect(() => {
    if (plot.current) fill(plot.current, props);
  }, [columns, stretch, most]);

  const times = columns[0] ?? [];
  const shown = at !== null && at < times.length ? at : lastKnown(columns);
  const moveBy = (event: KeyboardEvent): void => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const drawn = plot.current;
    if (!by || !drawn || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    const to = Math.min(times.length - 1, Math.max(0, (shown ?? times.length) + by));
    drawn.setCursor({ left: drawn.valToPos(times[to] ?? 0, 'x'), top: 10 });
  };
  return (
    <section class="panel chart">
      <div class="head">
        <h2>{title}</h2>
        {hasPeaks && (
          <button type="button" class="small" aria-pressed={cuts} onClick={() => setCuts(!cuts)}>
            {most === null ? 'clip peaks' : `clipped above ${format(most)}`}
          </button>
        )}
      </div>
      <Legend lines={lines} columns={columns} at={shown} isChosen={at !== null} format={format} />
      <div
        ref={place}
        class="plot"
        tabIndex={0}
        role="group"
        aria-label={`${title} over time; arrow keys select values`}
        onKeyDown={moveBy}
      />
    </section>
  );
}

/** A value above almost all others, with some space. */
function usual(columns: Column[]): number | null {
  const values = columns.slice(1).flatMap((column) => column.filter((it) => it !== null));
  values.sort((one, other) => one - other);
  const found = values[Math.floor((values.length - 1) * USUAL)];
  return found !== undefined && found > 0 ? found * ABOVE : null;
}

function lastKnown(columns: Column[]): number | null {
  const length = columns[0]?.length ?? 0;
  for (let index = length - 1; index >= 0; index -= 1) {
    if (columns.slice(1).some((column) => column[index] != null)) return index;
  }
  return null;
}

function fill(drawn: uPlot, { columns, stretch }: Props): void {
  drawn.batch(() => {
    drawn.setData(columns as uPlot.AlignedData, false);
    drawn.setScale('x', { min: stretch.from / 1000, max: stretch.until / 1000 });
  });
}

function options(
  latest: { current: Props },
  top: { current: number | null },
  width: number,
  setAt: (index: number | null) => void,
): uPlot.Options {
  const { lines, format, height = 190, isFromZero, band } = latest.current;
  const [ink, grid] = [colour('muted'), colour('grid')];
  const write = axis(format);
  const font = '12px system-ui, sans-serif';
  const common = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { show: false }, font };
  return {
    width,
    height,
    legend: { show: false },
    padding: [8, 26, 0, 0],
    cursor: {
      drag: { x: true, y: false, setScale: false },
      sync: { key: CURSORS },
      points: { size: 7 },
    },
    scales: {
      x: { time: true, auto: false },
      y: {
        range: (_, low, high) => {
          const [least, most] = between(low, high, isFromZero ?? false);
          return [least, Math.min(most, top.current ?? most)];
        },
      },
    },
    axes: [
      { ...common, values: (_, at) => times(at), space: 70, size: 26 },
      { ...common, values: (_, at) => write(at), size: 72, space: 34 },
    ],
    series: [{}, ...lines.map(series)],
    bands: band ? [{ series: [band[0] + 1, band[1] + 1], fill: colour('band') }] : [],
    hooks: {
      setCursor: [({ cursor }) => setAt((cursor.left ?? -1) < 0 ? null : (cursor.idx ?? null))],
      setSelect: [
        (drawn) => {
          const { left, width } = drawn.select;
          if (width < DRAG) return;
          const [from, until] = [left, left + width].map((it) => drawn.posToVal(it, 'x') * 1000);
          drawn.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          if (from !== undefined && until !== undefined) latest.current.onZoom({ from, until });
        },
      ],
    },
  };
}

function series(line: Line): uPlot.Series {
  const stroke = colour(line.colour);
  return {
    label: line.label,
    stroke: line.isBound ? 'transparent' : stroke,
    width: line.isBound ? 0 : (line.width ?? 1.5),
    ...(line.dash ? { dash: line.dash } : {}),
    ...(line.isFilled ? { fill: stroke.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.18)') } : {}),
    points: line.isBound || line.isFilled ? { show: false } : { size: 4 },
    spanGaps: false,
  };
}

/** Range of an axis: with some space, never empty. */
function between(low: number | null, high: number | null, isFromZero: boolean): [number, number] {
  if (low === null || high === null) return [0, 1];
  const least = isFromZero ? Math.min(0, low) : low;
  if (high === 0 && least === 0) return [0, 1];
  const room = (high - least || Math.abs(high)) * 0.08;
  return [isFromZero ? least : least - room, high + room];
}

/** The time of day; the date at midnight. */
function times(at: number[]): string[] {
  const seconds = (at[1] ?? 60) - (at[0] ?? 0);
  return at.map((it) => {
    const text = clock(it * 1000, seconds < 60, it * 1000);
    const date = new Date(it * 1000);
    return text === '00:00' ? day(date) : text;
  });
}
