/** Saves the shown results as a file. */

import type { Result } from './api';
import type { Loaded } from './results';

/** One line per result; values of a distribution have its name as a prefix, as in `delay_ns.p99`. */
export function csv(results: Result[]): string {
  const rows = results.map((it) => flat(it as unknown as Record<string, unknown>));
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const lines = rows.map((row) => keys.map((key) => field(row[key])).join(','));
  return `${[keys.join(','), ...lines].join('\r\n')}\r\n`;
}

function flat(value: Record<string, unknown>, before = ''): Record<string, unknown> {
  const row: Record<string, unknown> = {};
  for (const [key, it] of Object.entries(value)) {
    if (it !== null && typeof it === 'object') {
      Object.assign(row, flat(it as Record<string, unknown>, `${before}${key}.`));
    } else if (it !== null) {
      row[before + key] = it;
    }
  }
  return row;
}

/** Quotes a field by RFC 4180. */
function field(value: unknown): string {
  const text = value === undefined ? '' : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function save(name: string, loaded: Loaded, kind: 'csv' | 'json'): void {
  const text = kind === 'csv' ? csv(loaded.results) : JSON.stringify(loaded.results);
  const type = kind === 'csv' ? 'text/csv' : 'application/json';
  const link = document.createElement('a');
  const address = URL.createObjectURL(new Blob([text], { type }));
  const begin = new Date(loaded.stretch.from).toISOString().slice(0, 19).replaceAll(':', '');
  link.href = address;
  link.download = `${name}-${begin}Z.${kind}`;
  link.click();
  URL.revokeObjectURL(address);
}
