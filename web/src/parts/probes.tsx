/** The probes, and how they do. */

import { now, type Probe, type Task } from '../api';
import { apart, compared, stateOfProbe, wordsOf, type Compared } from '../state';
import { bytes, clock, count, lasting, time } from '../units';
import { Badge } from './badge';

export function Probes({ probes, tasks }: { probes: Probe[]; tasks: Task[] }) {
  if (probes.length === 0) {
    return (
      <p class="empty">
        No probes yet: <code>wirestamp pki token NAME</code> lets one in.
      </p>
    );
  }
  return (
    <ul class="probes">
      {probes.map((probe) => (
        <ProbeCard key={probe.name} probe={probe} tasks={tasks} />
      ))}
    </ul>
  );
}

function ProbeCard({ probe, tasks }: { probe: Probe; tasks: Task[] }) {
  const { health } = probe;
  const nameOf = (number: number): string => tasks.find((it) => it.number === number)?.name ?? `task ${number}`;
  return (
    <li class="panel probe">
      <header>
        <h3>{probe.name}</h3>
        <Badge state={stateOfProbe(probe)} />
      </header>
      {health && (
        <dl class="facts">
          <dt>clock</dt>
          <dd>
            {health.clock},{' '}
            {health.clock_error_ns === null
              ? 'which nobody keeps on UTC'
              : `on UTC within ${time(health.clock_error_ns)}`}
          </dd>
          {health.keepers.length > 0 && (
            <>
              <dt>kept by</dt>
              <dd>
                {health.keepers.map((it) => (
                  <div key={it.by}>{wordsOf(it)}</div>
                ))}
              </dd>
            </>
          )}
          {compared(probe, tasks).map((it) => (
            <ComparedFacts key={it.task} {...it} />
          ))}
          {health.captures.map((it) => (
            <CaptureFacts key={it.interface} {...it} />
          ))}
          {health.tests.map((it) => (
            <RefusedFacts key={`${it.task} ${it.end}`} of={nameOf(it.task)} count={it.forged + it.too_short} />
          ))}
          {health.held_bytes > 0 && (
            <>
              <dt>waits here</dt>
              <dd>{bytes(health.held_bytes)} for the collector</dd>
            </>
          )}
          <dt>uses</dt>
          <dd>
            {bytes(health.memory_bytes)} of memory, {time(health.processor_time_ns)} of processor
          </dd>
        </dl>
      )}
      {health && health.troubles.length > 0 && (
        <ul class="troubles">
          {health.troubles.map((it) => (
            <li key={it.task}>
              <b>{nameOf(it.task)}</b>: {it.why}
            </li>
          ))}
        </ul>
      )}
      <p class="fine">
        {probe.until
          ? `was at ${probe.address}`
          : `at ${probe.address} since ${clock(Date.parse(probe.since), false)}, heard ${lasting((now() - Date.parse(probe.heard)) / 1000)} ago`}
        {health && `, version ${health.version}`}
      </p>
    </li>
  );
}

/** The clock of another probe, by packets that went there and came back. */
function ComparedFacts(it: Compared) {
  return (
    <>
      <dt>beside {it.to}</dt>
      <dd>
        {it.contradicts ? (
          <b class="warning">{apart(it)}</b>
        ) : (
          `${time(Math.abs(it.ahead_ns))} ${it.ahead_ns > 0 ? 'behind' : 'ahead'}, \u00b1 ${time(it.bound_ns)}`
        )}
      </dd>
    </>
  );
}

/** Packets that came to an end of a test, and are none of it. */
function RefusedFacts(it: { of: string; count: number }) {
  return (
    it.count > 0 && (
      <>
        <dt>{it.of}</dt>
        <dd>
          <b class="warning">{count(it.count)} refused</b> that are none of the test
        </dd>
      </>
    )
  );
}

function CaptureFacts(it: { interface: string; packets: number; lost: number }) {
  return (
    <>
      <dt>{it.interface}</dt>
      <dd>
        {count(it.packets)} packets,{' '}
        {it.lost > 0 ? <b class="warning">{count(it.lost)} lost here</b> : 'none lost here'}
      </dd>
    </>
  );
}
