/** Summary of the shown results. */

import type { PathResult } from '../api';
import { sum } from '../series';
import { lossOf } from '../state';
import { count, share, time } from '../units';

/** The mean of all packets. */
function meanOf(results: PathResult[], of: 'delay_ns' | 'above_minimum_ns'): number | null {
  const packets = sum(results, (it) => it[of]?.count ?? 0);
  const total = sum(results, (it) => (it[of] ? it[of].mean * it[of].count : 0));
  return packets > 0 ? total / packets : null;
}

export function Figures({ results }: { results: PathResult[] }) {
  const delays = results.flatMap((it) => it.delay_ns ?? []);
  const mean = meanOf(results, 'delay_ns') ?? meanOf(results, 'above_minimum_ns');
  const errors = results.flatMap((it) => it.error_ns ?? []);
  const [matched, lost] = [sum(results, (it) => it.matched), sum(results, (it) => it.lost)];
  const loss = lossOf({ matched, lost });
  const min = delays.reduce((found, it) => Math.min(found, it.min), Infinity);
  const max = delays.reduce((found, it) => Math.max(found, it.max), -Infinity);
  const worst = errors.reduce((found, it) => Math.max(found, it), 0);
  return (
    <dl class="figures">
      <Figure
        name={delays.length > 0 ? 'mean delay' : 'mean delay above the minimum'}
        value={mean === null ? '\u2013' : time(mean)}
        note={errors.length > 0 ? `\u00b1 ${time(worst)}` : 'no error bound'}
      />
      {delays.length > 0 && <Figure name="min and max" value={time(min)} note={`to ${time(max)}`} />}
      <Figure
        name="lost"
        value={loss === null ? '\u2013' : share(loss)}
        note={`${count(lost)} of ${count(matched + lost)}`}
      />
      <Figure name="packets observed at both points" value={count(matched)} note="" />
    </dl>
  );
}

function Figure({ name, value, note }: { name: string; value: string; note: string }) {
  return (
    <div class="panel figure">
      <dt>{name}</dt>
      <dd>
        <b>{value}</b> <span class="fine">{note}</span>
      </dd>
    </div>
  );
}
