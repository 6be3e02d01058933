/** Keyboard shortcuts, active outside text fields. */

import { useEffect } from 'preact/hooks';
import type { TimeRange } from './api';
import { moved, RANGES, zoomed } from './parts/ranges';
import type { Range } from './route';

export const HELP: [string, string][] = [
  ['?', 'this help'],
  ['o', 'overview'],
  ['n', 'new task'],
  ['t', 'light, dark, or system theme'],
  ['1 2 3 4', 'the last 5 minutes, hour, 6 hours, 24 hours'],
  ['+ -', 'zoom in, zoom out'],
  ['\u2190 \u2192', 'earlier, later; in a chart: previous value, next value'],
  ['Tab', 'next element'],
  ['drag', 'in a chart: zoom to the selected time'],
];

/** Calls the function of a key. */
export function useKeys(keys: Record<string, () => void>): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const { target } = event;
      const isText = target instanceof Element && target.matches('input, select, textarea, dialog *');
      if (isText || event.ctrlKey || event.altKey || event.metaKey) return;
      const act = Object.hasOwn(keys, event.key) ? keys[event.key] : undefined;
      if (!act) return;
      event.preventDefault();
      act();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  });
}

export function useKeysOfRange(stretch: TimeRange, show: (range: Range) => void): void {
  const choose = RANGES.map(({ seconds }, index): [string, () => void] => [
    String(index + 1),
    () => show({ is: 'last', seconds }),
  ]);
  useKeys({
    ...Object.fromEntries(choose),
    '+': () => show(zoomed(stretch, 0.5)),
    '-': () => show(zoomed(stretch, 2)),
    ArrowLeft: () => show(moved(stretch, -0.5)),
    ArrowRight: () => show(moved(stretch, 0.5)),
  });
}
