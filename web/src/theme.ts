/** Light or dark theme: chosen by the user, or that of the system. */

import { Store } from './store';

export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const KEY = 'wirestamp-theme';

const kept = THEMES.find((it) => it === localStorage.getItem(KEY));
export const theme = new Store<Theme>(kept ?? 'system');

/** Counts changes of the colours, for canvas drawings. */
export const colours = new Store(0);

function apply(): void {
  document.documentElement.dataset['theme'] = theme.value;
  colours.set(colours.value + 1);
}

apply();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', apply);

export function nextTheme(): void {
  const next = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? 'system';
  localStorage.setItem(KEY, next);
  theme.set(next);
  apply();
}

/** Current colour of a custom property. */
export function colour(name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
