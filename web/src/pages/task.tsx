/** Results of a task. */

import type { ComponentChildren } from 'preact';
import { useCallback, useState } from 'preact/hooks';
import { isOfPath, type PathResult, type PointResult, type Result, type Task } from '../api';
import { save } from '../export';
import { Badge } from '../parts/badge';
import { EndTask } from '../parts/end_task';
import { FlowTable } from '../parts/flow_table';
import { PathCharts } from '../parts/path_charts';
import { PointCharts } from '../parts/point_charts';
import { Ranges } from '../parts/ranges';
import { RemoveTask } from '../parts/remove_task';
import { mayChange, me, newest, probes, tasks } from '../mesh';
import { useKeysOfRange } from '../keys';
import { stretchOf, useFlows, useResults, type Loaded } from '../results';
import { go, taskAddress, type Range } from '../route';
import { endsOf, stateOf } from '../state';
import { useStore } from '../store';
import { clock } from '../units';

/** Initial time range, in seconds: the newest results, or the last ones of an ended task. */
const FIRST = 300;

function firstRange(task: Task): Range {
  if (!task.ended) return { is: 'last', seconds: FIRST };
  const until = Date.parse(task.ended);
  return { is: 'fixed', from: Math.max(Date.parse(task.made), until - FIRST * 1000), until };
}

export function TaskPage({ name, range }: { name: string; range: Range | null }) {
  const all = useStore(tasks);
  const task = all && newest(all).find((it) => it.name === name);
  if (!all) return <p class="empty">Loading from the controller&hellip;</p>;
  if (!task) {
    return (
      <p class="empty">
        There is no task {name}. <a href="#/">All tasks</a>
      </p>
    );
  }
  const Found = task.measure === 'flows' ? Followed : Measured;
  return <Found task={task} range={range ?? firstRange(task)} />;
}

interface FoundProps {
  task: Task;
  range: Range;
}

function Measured({ task, range }: FoundProps) {
  const { loaded, error } = useResults(task.name, range);
  const show = useCallback((to: Range) => go(taskAddress(task.name, to)), [task.name]);
  const latest = range.is === 'last' && loaded ? loaded.results : [];
  const saved = loaded && loaded.results.length > 0 ? loaded : null;
  return (
    <Frame {...{ task, range, latest, error, show }} onSave={saved && ((kind) => save(task.name, saved, kind))}>
      {loaded && loaded.missing.length > 0 && (
        <p class="warning" role="note">
          Results are missing: no answer from the collector {loaded.missing.join(', ')}
        </p>
      )}
      {loaded ? (
        <Charts {...{ task, loaded }} onZoom={(to) => show({ is: 'fixed', ...to })} />
      ) : (
        !error && <p class="empty">Loading results&hellip;</p>
      )}
    </Frame>
  );
}

function Followed({ task, range }: FoundProps) {
  const { loaded, error } = useFlows(task.name, range);
  const show = useCallback((to: Range) => go(taskAddress(task.name, to)), [task.name]);
  return (
    <Frame {...{ task, range, error, show }} latest={[]} onSave={null}>
      {loaded && (loaded.length > 0 ? <FlowTable flows={loaded} /> : <NoResults task={task} />)}
      {!loaded && !error && <p class="empty">Loading results&hellip;</p>}
    </Frame>
  );
}

interface FrameProps extends FoundProps {
  /** The newest results, if they are shown. */
  latest: Result[];
  error: string | null;
  show: (range: Range) => void;
  /** Null if there is nothing to save. */
  onSave: ((kind: 'csv' | 'json') => void) | null;
  children: ComponentChildren;
}

/** Header and controls of any task. */
function Frame({ task, range, latest, error, show, onSave, children }: FrameProps) {
  const [there, who] = [useStore(probes), useStore(me)];
  const [isEnding, setEnding] = useState(false);
  const [isRemoving, setRemoving] = useState(false);
  const stretch = stretchOf(range);
  useKeysOfRange(stretch, show);
  return (
    <>
      <div class="head">
        <div>
          <h1>{task.name}</h1>
          <p class="fine">
            {task.measure} {endsOf(task).join(' \u2192 ')}
            {task.filter && (
              <>
                , <code>{task.filter}</code>
              </>
            )}
            {task.share !== undefined && task.share < 1 && `, sampled share ${task.share}`}
            {task.codec && `, MOS for ${task.codec}`}
            {task.shards && `, ${task.shards} shards`}
            {task.archive === 'observations' && ', observations archived'}, since{' '}
            {clock(Date.parse(task.made), false)}
          </p>
        </div>
        <Badge state={stateOf(task, there, latest, error)} />
        <div class="actions">
          {(['csv', 'json'] as const).map((kind) => (
            <button
              key={kind}
              type="button"
              disabled={!onSave}
              onClick={() => onSave?.(kind)}
            >
              Save {kind.toUpperCase()}
            </button>
          ))}
          {mayChange(who) && !task.ended && (
            <button type="button" class="danger" onClick={() => setEnding(true)}>
              End task
            </button>
          )}
          {mayChange(who) && task.ended && (
            <button type="button" class="danger" onClick={() => setRemoving(true)}>
              Remove task
            </button>
          )}
        </div>
      </div>
      <Ranges range={range} stretch={stretch} onRange={show} />
      {error && (
        <p class="panel error" role="alert">
          {error}
        </p>
      )}
      {children}
      {isEnding && <EndTask task={task} onClose={() => setEnding(false)} />}
      {isRemoving && <RemoveTask task={task} onClose={() => setRemoving(false)} onRemoved={() => go('#/')} />}
    </>
  );
}

interface ChartsProps {
  task: Task;
  loaded: Loaded;
  onZoom: (stretch: { from: number; until: number }) => void;
}

function Charts({ task, loaded, onZoom }: ChartsProps) {
  const { results, stretch, step } = loaded;
  const first = results[0];
  if (!first) return <NoResults task={task} />;
  const shared = { task, stretch, step, onZoom };
  return isOfPath(first) ? (
    <PathCharts {...shared} results={results as PathResult[]} />
  ) : (
    <PointCharts {...shared} results={results as PointResult[]} />
  );
}

function NoResults({ task }: { task: Task }) {
  const ended = task.ended ? Date.parse(task.ended) : null;
  const range: Range = { is: 'last', seconds: 86_400 };
  return (
    <p class="empty">
      No results in this time range.{' '}
      {ended ? (
        <a href={taskAddress(task.name, firstRange(task))}>Last results</a>
      ) : (
        <>
          Results arrive a few seconds after the packets. <a href={taskAddress(task.name, range)}>The last 24 hours</a>
        </>
      )}
    </p>
  );
}
