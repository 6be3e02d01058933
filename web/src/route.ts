/** The current part of the page: the fragment of its URL. */

import { Store } from './store';
import type { TimeRange } from './api';

/** The shown time: the last seconds, or a fixed time range. */
export type Range = { is: 'last'; seconds: number } | ({ is: 'fixed' } & TimeRange);

export type Route = { is: 'overview' } | { is: 'new' } | { is: 'task'; name: string; range: Range | null };

export const route = new Store<Route>(read());

window.addEventListener('hashchange', () => route.set(read()));

function read(): Route {
  const [path = '', query = ''] = location.hash.replace(/^#/, '').split('?');
  const [, first, name] = path.split('/');
  if (first === 'new') return { is: 'new' };
  if (first === 'task' && name) return { is: 'task', name: decoded(name), range: readRange(query) };
  return { is: 'overview' };
}

/** The text of an escaped name, or the name itself if it is not valid. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

function readRange(query: string): Range | null {
  const values = new URLSearchParams(query);
  const seconds = Number(values.get('last'));
  if (seconds > 0) return { is: 'last', seconds };
  const [from, until] = ['from', 'until'].map((key) => Date.parse(values.get(key) ?? ''));
  return from !== undefined && until !== undefined && from < until ? { is: 'fixed', from, until } : null;
}

export function taskAddress(name: string, range?: Range): string {
  if (!range) return `#/task/${name}`;
  const query =
    range.is === 'last'
      ? `last=${range.seconds}`
      : `from=${new Date(range.from).toISOString()}&until=${new Date(range.until).toISOString()}`;
  return `#/task/${name}?${query}`;
}

export function go(address: string): void {
  location.hash = address;
}
