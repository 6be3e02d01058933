/** Charts of the answers of an active test: round trip, delay and loss of the return path. */

import { useMemo } from 'preact/hooks';
import type { PathResult, ReturnPath, Summary, TimeRange } from '../api';
import { columns, sum } from '../series';
import { count, share, time } from '../units';
import { Chart, type Line } from './chart';

interface Props {
  results: PathResult[];
  stretch: TimeRange;
  step: number;
  onZoom: (stretch: TimeRange) => void;
}

const DELAY: Line[] = [
  { label: 'max', colour: 'high', dash: [7, 4] },
  { label: 'mean', colour: 'main', width: 2 },
  { label: 'min', colour: 'low', dash: [2, 3] },
  { label: 'upper bound', colour: 'main', isBound: true },
  { label: 'lower bound', colour: 'main', isBound: true },
];
const LOSS: Line[] = [{ label: 'lost', colour: 'high', isFilled: true }];

type Of<T> = (path: ReturnPath) => T | null;
type Value = (result: PathResult) => number | null;

/** Max, mean and min, and the mean with its error in both directions. */
function values(of: Of<Summary>, errorOf: Of<number>): Value[] {
  const value =
    (act: (spread: Summary, path: ReturnPath) => number | null): Value =>
    ({ return_path: path }) => {
      const spread = path && of(path);
      return spread ? act(spread, path) : null;
    };
  const bound = (sign: 1 | -1): Value =>
    value(({ mean }, path) => {
      const error = errorOf(path);
      return error === null ? null : mean + sign * error;
    });
  return [value((it) => it.max), value((it) => it.mean), value((it) => it.min), bound(1), bound(-1)];
}

const lossOf: Value = ({ return_path: path }) => {
  const known = path ? path.answered + path.lost : 0;
  return path && known > 0 ? path.lost / known : null;
};

const ROUND_TRIP = values(
  (it) => it.round_trip_ns,
  (it) => it.round_trip_error_ns,
);
const BACK = values(
  (it) => it.delay_ns,
  (it) => it.error_ns,
);

export function ReturnCharts({ results, stretch, step, onZoom }: Props) {
  const [trips, delays, losses] = [ROUND_TRIP, BACK, [lossOf]].map((them) =>
    useMemo(() => columns(results, step, them), [results, step]),
  );
  const shared = { stretch, onZoom };
  const has = (of: Of<Summary>): boolean => results.some((it) => it.return_path && of(it.return_path) !== null);
  return (
    <>
      {trips && has((it) => it.round_trip_ns) && (
        <Chart {...shared} title="Round trip" lines={DELAY} band={[3, 4]} columns={trips} format={time} hasPeaks />
      )}
      {delays && has((it) => it.delay_ns) && (
        <Chart
          {...shared}
          title="One-way delay of the return path"
          lines={DELAY}
          band={[3, 4]}
          columns={delays}
          format={time}
          hasPeaks
        />
      )}
      {losses && results.some((it) => it.return_path) && (
        <Chart {...shared} title="Loss of the return path" lines={LOSS} columns={losses} format={share} isFromZero />
      )}
    </>
  );
}

/** The answers in words, and why they are unknown. */
export function ReturnNote({ results }: { results: PathResult[] }) {
  const paths = results.flatMap((it) => it.return_path ?? []);
  const [answered, lost, undetermined] = (['answered', 'lost', 'undetermined'] as const).map((key) =>
    sum(paths, (it) => it[key]),
  ) as [number, number, number];
  const errors = paths.filter((it) => it.no_error !== undefined).length;
  const wrong = paths.filter((it) => it.contradicts_the_clocks).length;
  const unknown = results.filter((it) => it.no_return_path !== undefined).length;
  if (paths.length === 0 && unknown === 0) return null;
  return (
    <p class="fine">
      {paths.length > 0 &&
        `Return path: ${count(answered)} answered, ${count(lost)} lost, ${count(undetermined)} undetermined. `}
      {unknown > 0 && `The sender did not report answers in ${share(unknown / results.length)} of this time. `}
      {errors > 0 && `The reflector did not report the error in ${share(errors / results.length)} of this time. `}
      {wrong > 0 &&
        `A clock exceeds its error bound: in ${share(wrong / results.length)} of this time, answers seem to arrive before they were sent.`}
    </p>
  );
}
