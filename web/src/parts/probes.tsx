/** List of the probes with their states. */

import { now, type Probe, type Task, type TestCounts } from '../api';
import { apart, compared, stateOfProbe, wordsOf, type ComparedClocks } from '../state';
import { bytes, clock, count, lasting, time } from '../units';
import { Badge } from './badge';

export function Probes({ probes, tasks }: { probes: Probe[]; tasks: Task[] }) {
  if (probes.length === 0) {
    return (
      <p class="empty">
        No probes yet: admit one with <code>wirestamp pki token NAME</code>.
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
              ? 'not synchronised to UTC'
              : `UTC \u00b1 ${time(health.clock_error_ns)}`}
          </dd>
          {health.keepers.length > 0 && (
            <>
              <dt>clock sources</dt>
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
            <RefusedFacts key={`${it.task} ${it.end}`} of={nameOf(it.task)} test={it} />
          ))}
          {health.held_bytes > 0 && (
            <>
              <dt>spool</dt>
              <dd>{bytes(health.held_bytes)} not acknowledged by the collector</dd>
            </>
          )}
          <dt>resources</dt>
          <dd>
            {bytes(health.memory_bytes)} of memory, {time(health.processor_time_ns)} of CPU time
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
      {probe.refused && (
        <p class="fine">
          Another probe with this certificate was refused
          {probe.refused_at && ` at ${clock(Date.parse(probe.refused_at), false)}`}, from {probe.refused}: enrol each
          probe with its own token
        </p>
      )}
      <p class="fine">
        {probe.until
          ? `last address: ${probe.address}`
          : `at ${probe.address} since ${clock(Date.parse(probe.since), false)}, last contact ${lasting((now() - Date.parse(probe.heard)) / 1000)} ago`}
        {health && `, version ${health.version}`}
      </p>
    </li>
  );
}

/** Clock offset to another probe, measured by test packets. */
function ComparedFacts(it: ComparedClocks) {
  return (
    <>
      <dt>clock offset to {it.to}</dt>
      <dd>
        {it.contradicts ? (
          <b class="warning">{apart(it)}</b>
        ) : (
          `this clock is ${time(Math.abs(it.ahead_ns))} ${it.ahead_ns > 0 ? 'behind' : 'ahead'}, \u00b1 ${time(it.bound_ns)}`
        )}
      </dd>
    </>
  );
}

/** Datagrams of a test that were rejected, or not answered. */
function RefusedFacts(it: { of: string; test: TestCounts }) {
  const { forged, too_short, answers = 0, limited = 0 } = it.test;
  const rejected = forged + too_short + answers;
  return (
    rejected + limited > 0 && (
      <>
        <dt>{it.of}</dt>
        <dd>
          {rejected > 0 && (
            <div>
              <b class="warning">{count(rejected)} rejected</b>: not packets of the test
            </div>
          )}
          {limited > 0 && (
            <div>
              <b class="warning">{count(limited)} not answered</b>: above the max rate of the test
            </div>
          )}
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
