import { useEffect, useState } from 'preact/hooks';

// A value that components subscribe to.
export class Signal<T> {
  private readers = new Set<() => void>();
  constructor(private now: T) {}
  get value(): T {
    return this.now;
  }
  set(v: T): void {
    if (Object.is(v, this.now)) return;
    this.now = v;
    for (const r of [...this.readers]) r();
  }
  follow(r: () => void): () => void {
    this.readers.add(r);
    return () => {
      this.readers.delete(r);
    };
  }
}

export function use<T>(s: Signal<T>): T {
  const [, again] = useState({});
  const drawn = s.value;
  useEffect(() => {
    if (!Object.is(s.value, drawn)) again({}); // set between the first drawing and now
    return s.follow(() => again({}));
  }, [s]);
  return drawn;
}
