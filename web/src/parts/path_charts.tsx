/** Charts of a path: delay, delay variation, loss, reordering. */

import { useMemo } from 'preact/hooks';
import type { PathResult, TimeRange, Summary, Task } from '../api';
import { columns, sum } from '../series';
import { probes, tasks } from '../mesh';
import { apart, comparedOf, lossOf, whyNoDelay, whyNoMos } from '../state';
import { useStore } from '../store';
import { packetRate, score, share, time } from '../units';
import { Chart, type Line } from './chart';
import { Figures } from './figures';
import { Histogram } from './histogram';
import { Ledger } from './ledger';
import { ReturnCharts, ReturnNote } from './return_charts';

interface Props {
  task: Task;
  results: PathResult[];
  stretch: TimeRange;
  step: number;
  onZoom: (stretch: TimeRange) => void;
}

const DELAY: Line[] = [
  { label: 'p99', colour: 'high', dash: [7, 4] },
  { label: 'mean', colour: 'main', width: 2 },
  { label: 'min', colour: 'low', dash: [2, 3] },
];
const BOUNDS: Line[] = [
  { label: 'upper bound', colour: 'main', isBound: true },
  { label: 'lower bound', colour: 'main', isBound: true },
];
const VARIATION: Line[] = [
  { label: 'p99', colour: 'high', dash: [7, 4] },
  { label: 'standard deviation', colour: 'main', width: 2 },
];
const LOSS: Line[] = [{ label: 'lost', colour: 'high', isFilled: true }];
const ORDER: Line[] = [
  { label: 'reordered', colour: 'main' },
  { label: 'duplicates', colour: 'high', dash: [7, 4] },
];
const RATE: Line[] = [
  { label: 'sent', colour: 'main', width: 2 },
  { label: 'received', colour: 'high', dash: [7, 4] },
];
const CLOCKS: Line[] = [{ label: 'error', colour: 'main', isFilled: true }];
const MOS: Line[] = [{ label: 'MOS', colour: 'main', width: 2 }];

/** Without percentiles, the max is shown. */
const named = (lines: Line[], hasPercentiles: boolean): Line[] =>
  hasPercentiles ? lines : lines.map((line) => (line.label === 'p99' ? { ...line, label: 'max' } : line));

const high = (it: Summary | null, hasPercentiles: boolean): number | null => it && (hasPercentiles ? it.p99 : it.max);

type Value = (result: PathResult) => number | null;

const bound =
  (sign: 1 | -1): Value =>
  (it) =>
    it.delay_ns && it.error_ns !== null ? it.delay_ns.mean + sign * it.error_ns : null;

const ofMatched =
  (value: (result: PathResult) => number): Value =>
  (it) =>
    it.matched > 0 ? value(it) / it.matched : null;

export function PathCharts({ task, results, stretch, step, onZoom }: Props) {
  const of = (...values: Value[]) => useMemo(() => columns(results, step, values), [results, step]);
  const known = results.some((it) => it.delay_ns !== null);
  const exact = results.some((it) => it.above_minimum_ns?.p99 != null);
  const delays = of(
    (it) => high(it.delay_ns, exact),
    (it) => it.delay_ns?.mean ?? null,
    (it) => it.delay_ns?.min ?? null,
    bound(1),
    bound(-1),
  );
  const above = of(
    (it) => high(it.above_minimum_ns, exact),
    (it) => it.above_minimum_ns?.mean ?? null,
  );
  const variation = of(
    (it) => high(it.variation_ns, exact),
    (it) => it.variation_ns?.stddev ?? null,
  );
  const loss = of(lossOf);
  const order = of(
    ofMatched((it) => it.reordered),
    ofMatched((it) => it.duplicated),
  );
  const rate = of(
    (it) => it.sent / step,
    (it) => it.received / step,
  );
  const clocks = of((it) => it.error_ns);
  const mos = of((it) => it.mos ?? null);
  const shared = { stretch, onZoom };
  return (
    <>
      <Figures results={results} />
      <Clocks task={task} results={results} />
      <MissingMos task={task} results={results} />
      <BoundedCounts results={results} />
      <ReturnNote results={results} />
      <div class="charts">
        {known ? (
          <Chart
            {...shared}
            title="One-way delay"
            lines={named([...DELAY, ...BOUNDS], exact)}
            band={[3, 4]}
            columns={delays}
            format={time}
            height={260}
            hasPeaks
          />
        ) : (
          <Chart
            {...shared}
            title="Delay above the minimum of each second"
            lines={named(DELAY.slice(0, 2), exact)}
            columns={above}
            format={time}
            height={260}
            isFromZero
            hasPeaks
          />
        )}
        <Chart
          {...shared}
          title="Delay variation"
          lines={named(VARIATION, exact)}
          columns={variation}
          format={time}
          isFromZero
          hasPeaks
        />
        <Chart {...shared} title="Loss" lines={LOSS} columns={loss} format={share} isFromZero />
        <Chart {...shared} title="Reordering" lines={ORDER} columns={order} format={share} isFromZero />
        <ReturnCharts {...shared} results={results} step={step} />
        <Chart {...shared} title="Packets" lines={RATE} columns={rate} format={packetRate} isFromZero />
        {results.some((it) => it.mos !== undefined) && (
          <Chart
            {...shared}
            title={`Call quality${task.codec ? ` with ${task.codec}` : ''} (MOS, 1 to 4.5)`}
            lines={MOS}
            columns={mos}
            format={score}
          />
        )}
        {results.some((it) => it.error_ns !== null) && (
          <Chart
            {...shared}
            title="Max error of delays"
            lines={CLOCKS}
            columns={clocks}
            format={time}
            isFromZero
          />
        )}
      </div>
      <Histogram name={task.name} stretch={stretch} />
      <Ledger results={results} from={task.from ?? 'the first point'} to={task.to ?? 'the second point'} />
    </>
  );
}

/** Note on results without a MOS. */
function MissingMos({ task, results }: { task: Task; results: PathResult[] }) {
  const without = results.flatMap((it) => it.no_mos ?? []);
  const reasons = [...new Set(without)].map((it) => whyNoMos(task, it));
  if (without.length === 0) return null;
  return (
    <p class="fine">
      The MOS is not available for {share(without.length / results.length)} of this time:{' '}
      {reasons.join('; ')}.
    </p>
  );
}

/** Note on results whose counts are bounds. */
function BoundedCounts({ results }: { results: PathResult[] }) {
  const bounded = sum(results, (it) => (it.counts_are_bounds ? 1 : 0));
  if (bounded === 0) return null;
  return (
    <p class="fine">
      Lost and unexpected packets are lower bounds for {share(bounded / results.length)} of this time, and undetermined
      ones upper bounds: captures missed packets, and it is not known which shards they belong to.
    </p>
  );
}

/** Warnings about the clocks. */
function Clocks({ task, results }: { task: Task; results: PathResult[] }) {
  const unknown = results.filter((it) => it.not_synchronised !== null);
  const wrong = sum(results, (it) => (it.contradicts_the_clocks ? 1 : 0));
  const reasons = [...new Set(unknown.map((it) => whyNoDelay(task, it.not_synchronised)))];
  const [there, all] = [useStore(probes), useStore(tasks)];
  const beside = comparedOf(task, there ?? [], all ?? []);
  if (unknown.length === 0 && wrong === 0 && !beside?.contradicts) return null;
  return (
    <div class="panel notice" role="note">
      {unknown.length > 0 && (
        <p>
          <b>
            {unknown.length === results.length
              ? 'No one-way delay'
              : `No one-way delay in ${share(unknown.length / results.length)} of this time`}
            :
          </b>{' '}
          {reasons.join('; ')}. Delay above the minimum, delay variation, loss and reordering are available. To fix
          it, run chrony or ptp4l on that machine.
        </p>
      )}
      {wrong > 0 && (
        <p>
          <b>A clock exceeds its error bound:</b> in {share(wrong / results.length)} of this time, packets seem to
          arrive before they were sent, by more than the error bounds of both clocks.
        </p>
      )}
      {beside?.contradicts && (
        <p>
          <b>A clock exceeds its error bound:</b> {apart(beside)}. Delays of this path may have the same error.
        </p>
      )}
    </div>
  );
}
