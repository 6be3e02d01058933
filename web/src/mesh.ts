/** State of the mesh, kept up to date by the controller's events, or by polling. */

import { fetchMe, fetchProbes, fetchTasks, type Me, type Probe, type Task } from './api';
import { Store } from './store';

/** State of the connection to the controller. */
export type Link = { is: 'live' } | { is: 'asking' } | { is: 'away'; why: string };

export const me = new Store<Me | null>(null);
export const tasks = new Store<Task[] | null>(null);
export const probes = new Store<Probe[] | null>(null);
export const link = new Store<Link>({ is: 'asking' });

/** Counts the notifications of new results. */
export const resultEvents = new Store(0);

/** Polling interval without events, and reconnect interval of events, in milliseconds. */
const INTERVAL = 2000;
const AGAIN = 15_000;

let isLive = false;

async function refresh(...what: (() => Promise<void>)[]): Promise<void> {
  try {
    await Promise.all(what.map((it) => it()));
    link.set({ is: isLive ? 'live' : 'asking' });
  } catch (error) {
    link.set({ is: 'away', why: (error as Error).message });
  }
}

const refreshMe = async (): Promise<void> => me.set(await fetchMe());
const refreshTasks = async (): Promise<void> => tasks.set(await fetchTasks());
const refreshProbes = async (): Promise<void> => probes.set(await fetchProbes());
const notifyResults = (): void => resultEvents.set(resultEvents.value + 1);

const refreshAll = (): Promise<void> => refresh(refreshMe, refreshTasks, refreshProbes);

/** Keeps everything up to date. A hidden page closes its connection: browsers allow few per host. */
export function follow(): void {
  let events: EventSource | null = null;
  const connect = (): void => {
    events?.close();
    isLive = false;
    events = document.hidden ? null : openEvents();
  };
  document.addEventListener('visibilitychange', connect);
  connect();
  void refreshAll();
  setInterval(() => {
    if (isLive || document.hidden) return;
    void refreshAll();
    notifyResults();
  }, INTERVAL);
  setInterval(() => {
    // Unless the connection was refused, the browser reconnects automatically.
    if (events?.readyState === EventSource.CLOSED) connect();
  }, AGAIN);
}

function openEvents(): EventSource {
  const events = new EventSource('api/v1/events');
  events.onopen = () => {
    isLive = true;
    void refreshAll();
    notifyResults();
  };
  events.onerror = () => {
    isLive = false;
  };
  events.addEventListener('results', notifyResults);
  events.addEventListener('tasks', () => void refresh(refreshTasks));
  events.addEventListener('probes', () => void refresh(refreshProbes));
  return events;
}

/** Reloads the tasks, because one was created or ended. */
export function tasksChanged(): Promise<void> {
  return refresh(refreshTasks);
}

/** Whether the user may create and end tasks. */
export function mayChange(who: Me | null): boolean {
  return who?.role === 'operator' || who?.role === 'controller';
}

/** The newest task of each name: a changed task continues under a new number. */
export function newest(all: Task[]): Task[] {
  const byName = new Map<string, Task>();
  for (const task of all) {
    const other = byName.get(task.name);
    if (!other || other.number < task.number) byName.set(task.name, task);
  }
  return [...byName.values()].sort((one, other) => one.name.localeCompare(other.name));
}
