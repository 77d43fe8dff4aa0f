import { useRef } from 'preact/hooks';
import type { Draft } from './forms';
import { rebase, toBody, toValues, type Body, type FormField } from './formsbody';
import { list, moment } from './format';

// useRebase returns a check before an edit is stored, against lost updates: what others changed meanwhile is kept, and where they changed
// the same fields the edit is refused once.
export function useRebase(fields: FormField[]): (draft: Draft, mine: Body, now: Body, at: string) => { changed: string[]; merged: Body } {
  const warned = useRef('');
  return (draft, mine, now, at) => {
    const { base } = draft,
      stored = toValues(fields, now);
    const { changed, both, merged } = rebase(toBody(fields, base, base).body, mine, toBody(fields, stored, stored).body);
    if (!changed.length) throw new Error('Nothing has changed.');
    if (both.length && warned.current !== at) {
      warned.current = at;
      throw new Error(`${list(both)} also changed at ${moment(at)}, after you opened this form. Submit again to replace that change.`);
    }
    return { changed, merged };
  };
}
