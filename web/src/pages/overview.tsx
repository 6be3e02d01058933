/** All tasks, the probes, and the paths between them. */

import { useEffect } from 'preact/hooks';
import { isBrief, now, type Probe, type Recent, type Task } from '../api';
import { Badge } from '../parts/badge';
import { Map } from '../parts/map';
import { perSecond } from '../parts/point_charts';
import { Probes } from '../parts/probes';
import { Sparkline } from '../parts/sparkline';
import { mayChange, me, newest, resultEvents, probes, tasks } from '../mesh';
import { recent, refreshRecent, troubles } from '../recent';
import { taskAddress } from '../route';
import { delayIn, delayOf, endsOf, latestDelay, lossOfAll, stateOf } from '../state';
import { useStore } from '../store';
import { bitRate, packetRate, share, time } from '../units';

export function Overview() {
  const [all, there, results] = [useStore(tasks), useStore(probes), useStore(recent)];
  const [who, many, { why }] = [useStore(me), useStore(resultEvents), useStore(troubles)];
  const ours = all && newest(all);
  const open = ours?.filter((it) => !it.ended) ?? [];
  const ended = ours?.filter((it) => it.ended) ?? [];
  useEffect(() => void refreshRecent(), [many, all]);
  if (!ours || !there) return <p class="empty">Loading from the controller&hellip;</p>;
  return (
    <>
      {why.map((it) => (
        <p class="panel error" role="alert" key={it}>
          {it}
        </p>
      ))}
      {(there.length > 0 || open.some((it) => it.from)) && (
        <section class="panel" aria-labelledby="map">
          <h2 id="map">Map</h2>
          <Map probes={there} tasks={open} recent={results} />
        </section>
      )}
      <section aria-labelledby="tasks">
        <div class="head">
          <h2 id="tasks">Tasks</h2>
          {mayChange(who) && (
            <a class="button" href="#/new">
              New task
            </a>
          )}
        </div>
        {open.length === 0 && <NoTasks may={mayChange(who)} />}
        <TaskList tasks={open} probes={there} results={results} />
        {ended.length > 0 && (
          <details class="ended">
            <summary>
              {ended.length} ended {ended.length === 1 ? 'task' : 'tasks'} (results stay available)
            </summary>
            <TaskList tasks={ended} probes={there} results={results} />
          </details>
        )}
      </section>
      <section aria-labelledby="probes">
        <h2 id="probes">Probes</h2>
        <Probes probes={there} tasks={all ?? []} />
      </section>
    </>
  );
}

function NoTasks({ may }: { may: boolean }) {
  return (
    <p class="empty">
      No tasks yet.{' '}
      {may ? (
        <>
          <a href="#/new">Create one</a>, and choose the points to measure between.
        </>
      ) : (
        'Operators can create one.'
      )}
    </p>
  );
}

interface ListProps {
  tasks: Task[];
  probes: Probe[];
  results: ReadonlyMap<number, Recent[]>;
}

function TaskList({ tasks, probes, results }: ListProps) {
  return (
    <ul class="tasks">
      {tasks.map((task) => (
        <TaskRow key={task.number} task={task} probes={probes} results={results.get(task.number) ?? []} />
      ))}
    </ul>
  );
}

/** Time range of the small charts, in seconds. */
const SHOWN = 180;

function TaskRow({ task, probes, results }: { task: Task; probes: Probe[]; results: Recent[] }) {
  const isAway = useStore(troubles).tasks.has(task.number);
  const state = stateOf(task, probes, results, isAway ? 'its collector does not answer' : null);
  const points = results
    .map((it): [number, number | null] => [it.begin_ns / 1e9, shape(it)])
    .filter((it): it is [number, number] => it[1] !== null);
  const until = now() / 1000;
  return (
    <li>
      <a class="panel task" href={taskAddress(task.name)}>
        <span class="what">
          <b>{task.name}</b>
          <span class="fine">
            {task.measure} {endsOf(task).join(' \u2192 ')}
          </span>
        </span>
        <Badge state={state} />
        <Latest results={results} />
        {!task.ended && <Sparkline points={points} from={until - SHOWN} until={until} />}
      </a>
    </li>
  );
}

/** Value of the small chart. */
const shape = (result: Recent): number | null => (isBrief(result) ? delayOf(result) : result.packets);

function Latest({ results }: { results: Recent[] }) {
  const last = results.at(-1);
  if (last && !isBrief(last)) {
    return (
      <span class="latest">
        <b>{packetRate(perSecond(last, last.packets, 1) ?? 0)}</b>{' '}
        <span class="fine">{bitRate(perSecond(last, last.bytes * 8, 1) ?? 0)}</span>
      </span>
    );
  }
  const latest = latestDelay(results);
  if (!latest) return <span class="latest fine">&ndash;</span>;
  const loss = lossOfAll(results);
  return (
    <span class="latest">
      <b>{delayIn(latest)}</b>{' '}
      <span class="fine">
        {latest.error_ns === undefined ? 'above the minimum' : `\u00b1 ${time(latest.error_ns)}`}
        {loss !== null && `, ${share(loss)} lost`}
      </span>
      {latest.contradicts_the_clocks && <b class="warning"> clock error</b>}
    </span>
  );
}
