/** A state: a symbol and a word. */

import type { Mood, State } from '../state';

export const SIGNS: Record<Mood, string> = { good: '\u2713', warning: '!', bad: '\u2715', idle: '\u25cb' };

export function Badge({ state }: { state: State }) {
  return (
    <span class={`badge ${state.mood}`} title={state.why}>
      <span class="sign" aria-hidden="true">
        {SIGNS[state.mood]}
      </span>
      {state.word}
    </span>
  );
}
