/** The mesh as the controller tells of it: kept up to date by its events, or by asking again and again. */

import { askMe, askProbes, askTasks, type Me, type Probe, type Task } from './api';
import { Store } from './store';

/** How what is shown is kept up to date. */
export type Link = { is: 'live' } | { is: 'asking' } | { is: 'away'; why: string };

export const me = new Store<Me | null>(null);
export const tasks = new Store<Task[] | null>(null);
export const probes = new Store<Probe[] | null>(null);
export const link = new Store<Link>({ is: 'asking' });

/** Counts how often there were new results. */
export const news = new Store(0);

/** How often is asked where nothing is told, and how often it is tried to be told, in milliseconds. */
const INTERVAL = 2000;
const AGAIN = 15_000;

let isTold = false;

async function refresh(...what: (() => Promise<void>)[]): Promise<void> {
  try {
    await Promise.all(what.map((it) => it()));
    link.set({ is: isTold ? 'live' : 'asking' });
  } catch (error) {
    link.set({ is: 'away', why: (error as Error).message });
  }
}

const refreshMe = async (): Promise<void> => me.set(await askMe());
const refreshTasks = async (): Promise<void> => tasks.set(await askTasks());
const refreshProbes = async (): Promise<void> => probes.set(await askProbes());
const tellOfResults = (): void => news.set(news.value + 1);

const refreshAll = (): Promise<void> => refresh(refreshMe, refreshTasks, refreshProbes);

/** Looks after all of it, for ever. A page that nobody sees takes no connection: browsers have few to one place. */
export function follow(): void {
  let events: EventSource | null = null;
  const attend = (): void => {
    events?.close();
    isTold = false;
    events = document.hidden ? null : listen();
  };
  document.addEventListener('visibilitychange', attend);
  attend();
  void refreshAll();
  setInterval(() => {
    if (isTold || document.hidden) return;
    void refreshAll();
    tellOfResults();
  }, INTERVAL);
  setInterval(() => {
    // Unless it was refused, the browser goes on trying by itself.
    if (events?.readyState === EventSource.CLOSED) attend();
  }, AGAIN);
}

function listen(): EventSource {
  const events = new EventSource('api/v1/events');
  events.onopen = () => {
    isTold = true;
    void refreshAll();
    tellOfResults();
  };
  events.onerror = () => {
    isTold = false;
  };
  events.addEventListener('results', tellOfResults);
  events.addEventListener('tasks', () => void refresh(refreshTasks));
  events.addEventListener('probes', () => void refresh(refreshProbes));
  return events;
}

/** Asks for the tasks at once, because one was entered or ended. */
export function tasksChanged(): Promise<void> {
  return refresh(refreshTasks);
}

/** Whether who looks may enter and end tasks. */
export function mayChange(who: Me | null): boolean {
  return who?.role === 'operator' || who?.role === 'controller';
}

/** The newest task of each name: one that was changed goes on under another number. */
export function newest(all: Task[]): Task[] {
  const byName = new Map<string, Task>();
  for (const task of all) {
    const other = byName.get(task.name);
    if (!other || other.number < task.number) byName.set(task.name, task);
  }
  return [...byName.values()].sort((one, other) => one.name.localeCompare(other.name));
}
