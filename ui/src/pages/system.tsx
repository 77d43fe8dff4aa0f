import type { JSX } from 'preact';
import { Acts } from '../acts';
import { bytes, number, span } from '../format';
import { Age, Facts, Id, Moment, Read, Section, Table, Title } from '../parts';
import { HealthBanner, HealthyParts, stale, useHealth } from '../health';

export function SystemPage(): JSX.Element {
  const data = useHealth();
  return (
    <>
      <Title name="System" side={<Acts names={['release', 'sweep']} on={{ ids: ['now'] }} />}>
        System
      </Title>
      <HealthBanner of={data} />
      <Section title="Redis">
        <Table
          label="Redis servers"
          rows={(data.down ?? data.value)?.redis ?? []}
          id={(r) => r.address ?? 'inside'}
          none="No server is known."
          columns={[
            { name: 'Server', cell: (r) => r.address ?? 'inside this process' },
            { name: 'State', cell: (r) => (r.error ? <b class="bad">{r.error}</b> : 'answers') },
            { name: 'Version', cell: (r) => r.version ?? <span class="dim">–</span> },
            { name: 'Role', cell: (r) => r.role ?? <span class="dim">–</span> },
            { name: 'Round trip', num: true, cell: (r) => (r.error ? <span class="dim">–</span> : `${number(r.roundTripMs)} ms`) },
            {
              name: 'Memory',
              num: true,
              cell: (r) => `${bytes(r.memoryBytes)}${r.maxMemoryBytes ? ` of ${bytes(r.maxMemoryBytes)}` : ''}`,
            },
            { name: 'When full', cell: (r) => r.maxMemoryPolicy ?? <span class="dim">–</span> },
            { name: 'Append only', cell: (r) => (r.appendOnly ? 'yes' : 'no') },
            { name: 'Replicas', num: true, cell: (r) => r.replicas },
            { name: 'Clock ahead', num: true, cell: (r) => `${number(r.clockOffsetMs)} ms` },
          ]}
        />
      </Section>
      <Read data={data} what="the shards and replicas" old={stale(data)}>
        {(s) => (
          <>
            <Section title="Shards">
              <Table
                label="Shards"
                rows={s.shards}
                id={(h) => String(h.shard)}
                none="No shard is known."
                columns={[
                  { name: 'Shard', num: true, cell: (h) => h.shard },
                  { name: 'Swept by', cell: (h) => (h.sweeper ? <Id id={h.sweeper} stop /> : <b class="bad">none</b>) },
                  { name: 'Lag', num: true, cell: (h) => span(h.lagMs) },
                  { name: 'Timeouts paused', num: true, cell: (h) => (h.stoppedMs ? span(h.stoppedMs) : 'no') },
                  {
                    name: 'Outage credit, last hour',
                    num: true,
                    cell: (h) => (h.outageCreditMs ? span(h.outageCreditMs) : <span class="dim">–</span>),
                  },
                  { name: 'Recoveries', num: true, cell: (h) => number(h.recoveries) },
                  { name: 'Events stored', num: true, cell: (h) => number(h.events) },
                  { name: 'For', num: true, cell: (h) => span(h.eventsAgeMs) },
                ]}
              />
            </Section>
            <Section title="Replicas">
              <Table
                label="Replicas"
                rows={s.replicas}
                id={(r) => r.replicaId}
                none="No replica has reported."
                columns={[
                  { name: 'Replica', cell: (r) => <Id id={r.replicaId} /> },
                  { name: 'Roles', cell: (r) => r.roles.join(', ') },
                  { name: 'Version', cell: (r) => r.version },
                  { name: 'Since', cell: (r) => <Moment at={r.since} /> },
                  { name: 'Last report', cell: (r) => <Age at={r.heardAt} /> },
                ]}
              />
            </Section>
            <Section title="Brake and reconciler">
              <Facts
                of={[
                  ['Mass-expiry brake', s.brake.enabled ? `holds from ${s.brake.sharePct} %` : 'off'],
                  ['Held by brake', number(s.brake.held)],
                  ['Reconciler', s.reconciler.ratePerSecond ? `${number(s.reconciler.ratePerSecond)} entries / s` : 'off'],
                  ['Examined, last hour', number(s.reconciler.examinedLastHour)],
                  ['Repaired, last hour', number(s.reconciler.repairedLastHour)],
                ]}
              />
            </Section>
          </>
        )}
      </Read>
      <HealthyParts of={data} />
    </>
  );
}
