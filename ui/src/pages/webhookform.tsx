import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { call, get, post, type Webhook } from '../api';
import { Acts, done } from '../acts';
import { withBody } from '../cli';
import { acted, useData } from '../data';
import { Form, Secret, type Draft } from '../forms';
import { toValues, type Body, type FormField } from '../formsbody';
import { useRebase } from '../formsedit';
import { Id, Read, Title } from '../parts';
import { go, href } from '../route';
import { TestAnswer } from './webhooktest';

const only = 'Only events about it.';
const fields: FormField[] = [
  { path: 'url', label: 'URL', required: true, hint: 'Where messages are posted.' },
  { path: 'events', label: 'Events', kind: 'words', required: true, hint: 'Types such as task.failed, or families such as worker.*' },
  { path: 'description', label: 'Description', hint: 'What it is for.' },
  { path: 'enabled', label: 'Enabled', kind: 'check', hint: 'While it is disabled, no events are collected for it.' },
  { path: 'queue', label: 'Queue', hint: 'Only events of this queue.', more: true },
  { path: 'taskType', label: 'Task type', hint: 'Only events of tasks of this type.', more: true },
  { path: 'subject', label: 'Subject', hint: 'A task, worker or machine: only events about it.', more: true },
  { path: 'runId', label: 'Run', hint: only, more: true },
  { path: 'workerId', label: 'Worker', hint: only, more: true },
  { path: 'machineId', label: 'Machine', hint: only, more: true },
];
const webhookId: FormField = { path: 'webhookId', label: 'Webhook id', required: true, hint: 'It names the webhook, such as alerts.' };

export function NewWebhook(): JSX.Element {
  const [created, set] = useState<Webhook | null>(null);
  const all = [webhookId, ...fields];
  if (created) return <Created of={created} />;
  return (
    <>
      <Title name="Create webhook">Create webhook</Title>
      <Form
        name="webhook"
        fields={all}
        initial={toValues(all, { enabled: true })}
        verb="Create webhook"
        back={href('webhooks')}
        cli={(body) => withBody('webhook', 'create', [], body)}
        save={async (body) => {
          const w = await post<Webhook>('v1/webhooks', body);
          acted.set(acted.value + 1);
          set(w);
        }}
      />
    </>
  );
}

function Created({ of: w }: { of: Webhook }): JSX.Element {
  return (
    <>
      <Title name="Webhook created" side={<Acts names={['testWebhook']} on={{ ids: [w.webhookId] }} />}>
        Created webhook <Id kind="webhook" id={w.webhookId} />
      </Title>
      <section class="panel form" aria-label="Secret">
        <p>The receiver verifies with this secret that a message is from Lubdub.</p>
        <Secret label="Secret" value={w.secret ?? ''} />
      </section>
      <TestAnswer id={w.webhookId} />
    </>
  );
}

const definition = (w: Webhook): Body =>
  Object.fromEntries(fields.map((f) => [f.path, (w as unknown as Body)[f.path]]).filter(([, v]) => v !== undefined));

export function EditWebhook({ id }: { id: string }): JSX.Element {
  const path = `v1/webhooks/${encodeURIComponent(id)}`;
  const data = useData('edit webhook/' + id, (signal) => get<Webhook>(path, {}, signal), 0);
  const check = useRebase(fields);
  const save = async (body: Body, draft: Draft): Promise<void> => {
    const now = await get<Webhook>(path);
    const { merged } = check(draft, body, definition(now), now.updatedAt);
    await call('PUT', path, { body: merged });
    done.set({ text: `Changed webhook ${id}`, failed: false });
    acted.set(acted.value + 1);
    go(href('webhooks/' + id));
  };
  return (
    <>
      <Title name={`Edit ${id}`} id={id}>
        Edit webhook
      </Title>
      <Read data={data} what="the webhook">
        {(v) => (
          <Form
            name={'webhook/' + id}
            fields={fields}
            initial={toValues(fields, definition(v))}
            verb="Save"
            back={href('webhooks/' + id)}
            cli={(body) => withBody('webhook', 'set', [id], body)}
            save={save}
          />
        )}
      </Read>
    </>
  );
}
