/** Map of the probes and the measured paths. */

import { useEffect, useRef, useState } from 'preact/hooks';
import type { Probe, Recent, Task } from '../api';
import { SIGNS } from './badge';
import { delayIn, latestDelay, lossOfAll, probeOf, stateOfProbe } from '../state';
import { taskAddress } from '../route';
import { share } from '../units';

interface Props {
  probes: Probe[];
  tasks: Task[];
  recent: ReadonlyMap<number, Recent[]>;
}

interface Place {
  x: number;
  y: number;
}

/** Pixels. */
const HEIGHT = 280;
const LOW = 170;
const NODE = 15;
const EDGE = 48;
const NAME = 46;

/** Bend of a path, so that paths and their labels do not overlap. */
const BEND = 70;

/** Max number of paths with labels. */
const WORDY = 8;

export function Map({ probes, tasks, recent }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const paths = tasks.filter((it) => it.from && it.to && !it.ended);
  const names = new Set(probes.map((it) => it.name));
  for (const path of paths) for (const end of endsOf(path)) names.add(end);
  const height = names.size > 2 ? HEIGHT : LOW;
  const places = arrange([...names].sort(), width, height);
  const pairs = paths.map((path) => [...endsOf(path)].sort().join(' '));
  return (
    <div class="map" ref={place}>
      <svg width={width} height={height} role="group" aria-label="Probes and the paths between them">
        <defs>
          <marker
            id="arrow"
            viewBox="0 0 8 8"
            refX="6"
            refY="4"
            markerWidth="10"
            markerHeight="10"
            markerUnits="userSpaceOnUse"
            orient="auto"
          >
            <path d="M0 0 8 4 0 8z" class="arrow" />
          </marker>
        </defs>
        {paths.map((path, index) => {
          const ends = endsOf(path);
          const [from, to] = ends.map((end) => places.get(end));
          if (!from || !to) return null;
          // A single path is straight; several paths between two probes bend to alternating sides.
          const isAlone = pairs.filter((it) => it === pairs[index]).length === 1;
          const nth = pairs.slice(0, index).filter((it) => it === pairs[index]).length;
          const side = (nth % 2 === 0 ? 1 : -1) * (ends[0] < ends[1] ? 1 : -1);
          const bend = isAlone ? 0 : side * BEND * (1 + Math.floor(nth / 2));
          const results = recent.get(path.number) ?? [];
          return <Edge key={path.name} {...{ path, from, to, bend, results }} wordy={paths.length <= WORDY} />;
        })}
        {[...places].map(([name, at]) => (
          <Node
            key={name}
            name={name}
            at={at}
            isHigh={at.y < height / 2}
            probe={probes.find((it) => it.name === name)}
          />
        ))}
      </svg>
    </div>
  );
}

const endsOf = (task: Task): [string, string] => [probeOf(task.from ?? ''), probeOf(task.to ?? '')];

/** Places nodes on an ellipse; two nodes side by side. */
function arrange(names: string[], width: number, height: number): globalThis.Map<string, Place> {
  const start = names.length === 2 ? Math.PI : names.length === 4 ? -Math.PI * 0.75 : -Math.PI / 2;
  const turned = names.map((_, index) => start + (index / names.length) * 2 * Math.PI);
  const fill = (values: number[], from: number, until: number): number[] => {
    const [min, max] = [Math.min(...values), Math.max(...values)];
    const scale = max - min > 1e-9 ? (until - from) / (max - min) : 0;
    return values.map((it) => (scale ? from + (it - min) * scale : (from + until) / 2));
  };
  const x = fill(turned.map(Math.cos), EDGE, width - EDGE);
  const y = fill(turned.map(Math.sin), NAME, height - NAME);
  return new globalThis.Map(names.map((name, index) => [name, { x: x[index] ?? 0, y: y[index] ?? 0 }]));
}

interface EdgeProps {
  path: Task;
  from: Place;
  to: Place;
  bend: number;
  results: Recent[];
  wordy: boolean;
}

function Edge({ path, from, to, bend, results, wordy }: EdgeProps) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length = Math.hypot(dx, dy) || 1;
  const [nx, ny] = [-dy / length, dx / length];
  const middle = { x: (from.x + to.x) / 2 + nx * bend, y: (from.y + to.y) / 2 + ny * bend };
  const toward = (end: Place): Place => {
    const [ex, ey] = [middle.x - end.x, middle.y - end.y];
    const far = Math.hypot(ex, ey) || 1;
    return { x: end.x + (ex / far) * (NODE + 5), y: end.y + (ey / far) * (NODE + 5) };
  };
  const [begin, end] = [toward(from), toward(to)];
  const line = `M${begin.x} ${begin.y}Q${middle.x} ${middle.y} ${end.x} ${end.y}`;
  const label = { x: (from.x + to.x) / 2 + (nx * bend) / 2, y: (from.y + to.y) / 2 + (ny * bend) / 2 };
  const [delay, loss] = words(results);
  const isLossy = loss !== null && loss > 0;
  const said = [delay, loss === null ? null : `${share(loss)} lost`].filter((it) => it !== null);
  const what = said.join(', ') || 'no recent results';
  return (
    <a href={taskAddress(path.name)} aria-label={`${path.name}, ${path.from} to ${path.to}: ${what}`}>
      <title>{`${path.name}: ${what}`}</title>
      <path d={line} class="reach" />
      <path
        d={line}
        class={`edge ${isLossy ? 'lossy' : ''} ${said.length > 0 ? '' : 'silent'}`}
        marker-end="url(#arrow)"
      />
      {wordy && (
        <text x={label.x} y={label.y} class="words">
          <tspan x={label.x} dy="-1.8em" class="name">
            {path.name}
          </tspan>
          <tspan x={label.x} dy="1.25em">
            {what}
          </tspan>
        </text>
      )}
    </a>
  );
}

/** The delay of the newest result, and the loss of all recent ones. */
function words(results: Recent[]): [string | null, number | null] {
  const latest = latestDelay(results);
  return latest ? [delayIn(latest), lossOfAll(results)] : [null, null];
}

interface NodeProps {
  name: string;
  at: Place;
  /** Whether the node is in the upper half: its name is above it. */
  isHigh: boolean;
  probe: Probe | undefined;
}

function Node({ name, at, isHigh, probe }: NodeProps) {
  const state = probe ? stateOfProbe(probe) : { mood: 'bad' as const, word: 'is not registered' };
  return (
    <g class={`node ${state.mood}`}>
      <title>{`${name} ${state.word}`}</title>
      <circle cx={at.x} cy={at.y} r={NODE} />
      <text x={at.x} y={at.y} dy="0.36em" class="sign">
        {SIGNS[state.mood]}
      </text>
      <text x={at.x} y={isHigh ? at.y - NODE - 8 : at.y + NODE + 17} class="name">
        {name}
      </text>
    </g>
  );
}
