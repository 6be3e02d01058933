/** A value with change notifications. */

import { useEffect, useState } from 'preact/hooks';

export class Store<T> {
  private readonly listeners = new Set<() => void>();

  constructor(public value: T) {}

  set(value: T): void {
    this.value = value;
    for (const listener of [...this.listeners]) listener();
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** The current value; redraws on changes. */
export function useStore<T>(store: Store<T>): T {
  const [value, show] = useState<{ value: T }>({ value: store.value });
  useEffect(() => {
    const update = (): void => show({ value: store.value });
    // The value may have changed before the subscription.
    if (store.value !== value.value) update();
    return store.subscribe(update);
  }, [store]);
  return value.value;
}
