/** Light or dark: as the system has it, or as somebody chose. */

import { Store } from './store';

export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const KEY = 'wirestamp-theme';

const kept = THEMES.find((it) => it === localStorage.getItem(KEY));
export const theme = new Store<Theme>(kept ?? 'system');

/** Tells when colours are others, for what is drawn and not styled. */
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

/** What a custom property is as a colour now. */
export function colour(name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
