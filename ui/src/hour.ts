import { useRef } from 'preact/hooks';
import { get, serverNow, type Stats } from './api';
import { useData, type Data } from './data';

type Step = Stats['series']['steps'][number];

const most = 360; // steps that the server keeps
const open = 9; // the newest steps, which may still change
const anHour = 3_600_000,
  every = 10_000; // ms; a step is as long

// useHour reads the last hour: once in full, a hundred kilobytes, then only what is new. It returns the newest seconds of it.
export function useHour(seconds: number): Data<Step[]> {
  const known = useRef<Step[]>([]);
  const begin = (s: Step | undefined): number => Date.parse(s?.at ?? '');
  const hour = useData(
    'hour',
    async (signal) => {
      const old = known.current,
        newest = begin(old[old.length - 1]);
      const steps = Number.isNaN(newest) ? most : Math.min(most, open + Math.ceil((serverNow() - newest) / every));
      const { series } = await get<Stats>('v1/stats', { steps }, signal);
      const from = begin(series.steps[0]),
        to = begin(series.steps[series.steps.length - 1]);
      known.current = [...old.filter((s) => begin(s) < from && begin(s) > to - anHour), ...series.steps];
      return known.current;
    },
    every,
  );
  const last = begin(hour.value?.[hour.value.length - 1]);
  return { ...hour, value: hour.value?.filter((s) => begin(s) > last - seconds * 1000) };
}
