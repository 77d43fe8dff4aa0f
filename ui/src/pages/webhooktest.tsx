import type { JSX } from 'preact';
import { get, type Delivery } from '../api';
import { tested } from '../acts';
import { useData } from '../data';
import { Age, Facts, Read, Section, State } from '../parts';
import { use } from '../signal';

// TestAnswer shows what the receiver answered to the last test message from here.
export function TestAnswer({ id }: { id: string }): JSX.Element | null {
  const of = use(tested);
  return of?.webhookId === id ? <Answer key={of.delivery.deliveryId} webhookId={id} of={of.delivery} /> : null;
}

function Answer({ webhookId, of }: { webhookId: string; of: Delivery }): JSX.Element {
  const path = `v1/webhooks/${encodeURIComponent(webhookId)}/deliveries`;
  const data = useData(
    'test/' + of.deliveryId,
    async (signal) => {
      const { deliveries } = await get<{ deliveries: Delivery[] }>(path, { pageSize: 100, order: 'desc' }, signal);
      return { delivery: deliveries.find((d) => d.deliveryId === of.deliveryId) };
    },
    1000,
  );
  return (
    <Section title="Answer to the test">
      <Read data={data} what="the delivery">
        {({ delivery: d }) => (
          <div role="status" aria-label="Answer to the test">
            {!d ? <p>Newer deliveries have displaced this one; look for it below.</p> : d.response ? <Response of={d} /> : <p>Sending …</p>}
          </div>
        )}
      </Read>
    </Section>
  );
}

function Response({ of: d }: { of: Delivery }): JSX.Element {
  const { status, tookMs, error, body } = d.response!;
  return (
    <>
      <Facts
        of={[
          ['Delivery', <State of={d.status} />],
          ['Status', status ?? 'no answer'],
          ['Latency', `${tookMs} ms`],
          ...(error ? [['Error', error] as [string, string]] : []),
          ...(d.status === 'PENDING' ? [['Next try', <Age at={d.nextAttemptAt} />] as [string, JSX.Element]] : []),
        ]}
      />
      {body ? (
        <pre tabIndex={0} role="group" aria-label="The beginning of its body">
          {body}
        </pre>
      ) : (
        <p class="dim">It had no body.</p>
      )}
    </>
  );
}
