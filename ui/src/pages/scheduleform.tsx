import type { JSX } from 'preact';
import { call, post, type Schedule } from '../api';
import { done } from '../acts';
import { withBody } from '../cli';
import { acted, useData } from '../data';
import { Form, type Draft } from '../forms';
import { changes, toBody, toValues, type Body, type FormField } from '../formsbody';
import { useRebase } from '../formsedit';
import { Read, Title } from '../parts';
import { go, href } from '../route';
import { NextFires } from './nextfires';
import { fieldsOf, useQueues } from './taskform';

const own: FormField[] = [
  {
    path: 'cron',
    label: 'Cron expression, in UTC',
    required: true,
    hint: '[seconds] minutes hours day-of-month month day-of-week, such as 30 9 * * MON-FRI',
  },
  {
    path: 'overlap',
    half: true,
    label: 'While its previous task has not ended',
    kind: 'choice',
    choices: [
      ['allow', 'a fire creates its task'],
      ['skip', 'a fire is skipped'],
    ],
  },
  {
    path: 'maxCatchup',
    half: true,
    label: 'Missed fires that are caught up',
    kind: 'number',
    required: true,
    hint: 'The newest, after a pause or an outage: 0 to 1,000.',
  },
];
const scheduleId: FormField = {
  path: 'scheduleId',
  label: 'Schedule id',
  required: true,
  hint: 'It names the schedule, such as nightly-report.',
};

const useFields = (): FormField[] => [...own, ...fieldsOf('task.', [], useQueues())];

const stored = (text: string, id: string): void => {
  done.set({ text, failed: false });
  acted.set(acted.value + 1);
  go(href('schedules/' + id));
};

export function NewSchedule(): JSX.Element {
  const fields = [scheduleId, ...useFields()];
  return (
    <>
      <Title name="Create schedule">Create schedule</Title>
      <Form
        name="schedule"
        fields={fields}
        initial={toValues(fields, { overlap: 'allow', maxCatchup: 100 })}
        verb="Create schedule"
        back={href('schedules')}
        cli={(body) => withBody('schedule', 'create', [], body)}
        save={async (body) => {
          const s = await post<Schedule>('v1/schedules', body);
          stored(`Created schedule ${s.scheduleId}`, s.scheduleId);
        }}
        after={{ cron: (v) => <NextFires id="new" cron={(v.cron ?? '').trim()} /> }}
      />
    </>
  );
}

const definition = ({ cron, overlap, maxCatchup, task }: Schedule): Body => ({ cron, overlap, maxCatchup, task });

export function EditSchedule({ id }: { id: string }): JSX.Element {
  const path = `v1/schedules/${encodeURIComponent(id)}`;
  const data = useData('edit schedule/' + id, (signal) => call<Schedule>('GET', path, { signal, exact: true }), 0);
  const fields = useFields();
  const check = useRebase(fields);
  const changed = (body: Body, draft: Draft): Body =>
    Object.fromEntries(changes(toBody(fields, draft.base, draft.base).body, body).map((k) => [k, body[k]]));
  const save = async (body: Body, draft: Draft): Promise<void> => {
    const now = await call<Schedule>('GET', path, { exact: true });
    check(draft, body, definition(now), now.updatedAt);
    await call('PATCH', path, { body: changed(body, draft) });
    stored(`Changed schedule ${id}`, id);
  };
  return (
    <>
      <Title name={`Edit ${id}`} id={id}>
        Edit schedule
      </Title>
      <Read data={data} what="the schedule">
        {(v) => (
          <Form
            name={'schedule/' + id}
            fields={fields}
            initial={toValues(fields, definition(v))}
            verb="Save"
            back={href('schedules/' + id)}
            cli={(body, draft) => withBody('schedule', 'set', [id], changed(body, draft))}
            save={save}
            after={{ cron: (v) => <NextFires id={id} cron={(v.cron ?? '').trim()} /> }}
          />
        )}
      </Read>
    </>
  );
}
