/** Charts of a point. */

import { useMemo } from 'preact/hooks';
import type { PointResult, TimeRange, Task } from '../api';
import { columns, sum } from '../series';
import { bitRate, bytes, count, packetRate } from '../units';
import { Chart, type Line } from './chart';

interface Props {
  task: Task;
  results: PointResult[];
  stretch: TimeRange;
  step: number;
  onZoom: (stretch: TimeRange) => void;
}

const PACKETS: Line[] = [{ label: 'packets', colour: 'main', isFilled: true }];
const BITS: Line[] = [{ label: 'bits', colour: 'main', isFilled: true }];

/** Rate over the observed time; null without observed time. */
export function perSecond(result: PointResult, value: number, step: number): number | null {
  const seconds = result.watched_ns === undefined ? step : result.watched_ns / 1e9;
  return seconds > 0 ? value / seconds : null;
}

export function PointCharts({ results, stretch, step, onZoom }: Props) {
  const of = (value: (result: PointResult) => number | null) =>
    useMemo(() => columns(results, step, [value]), [results, step]);
  const packets = of((it) => perSecond(it, it.packets, step));
  const bits = of((it) => perSecond(it, it.bytes * 8, step));
  const missed = sum(results, (it) => it.missed ?? 0);
  const shared = { stretch, onZoom, isFromZero: true };
  return (
    <>
      <dl class="figures">
        <div class="panel figure">
          <dt>packets</dt>
          <dd>
            <b>{count(sum(results, (it) => it.packets))}</b>
          </dd>
        </div>
        <div class="panel figure">
          <dt>volume</dt>
          <dd>
            <b>{bytes(sum(results, (it) => it.bytes))}</b>
          </dd>
        </div>
        <div class="panel figure">
          <dt>lost by the capture</dt>
          <dd>
            <b>{count(missed)}</b>{' '}
            <span class="fine">{missed > 0 ? 'not included in these numbers' : 'all packets captured'}</span>
          </dd>
        </div>
      </dl>
      <div class="charts">
        <Chart {...shared} title="Packets" lines={PACKETS} columns={packets} format={packetRate} />
        <Chart {...shared} title="Bandwidth" lines={BITS} columns={bits} format={bitRate} />
      </div>
    </>
  );
}
