import assert from 'node:assert/strict';
import test from 'node:test';
import { Snooze } from 'lubdub';
import { prometheusMetrics } from 'lubdub/prometheus';
import { register, Registry } from 'prom-client';
import { once, site } from './site.js';

test('the metrics of a worker appear in the exposition of the registry', async () => {
  const registry = new Registry();
  const s = await site(
    async (task) => {
      if (task.id === 'snoozed' && task.attempt === 1) throw new Snooze(40_000);
      await new Promise<void>((resolve) => void s.server.clock.setTimeout(resolve, 20_000));
      if (task.id === 'bad') throw new Error('no');
    },
    { concurrency: 1 },
    { metrics: prometheusMetrics(registry) },
  );
  s.server.intercept(async (r) => {
    if (r.path.endsWith('/heartbeat')) await new Promise<void>((resolve) => void s.server.clock.setTimeout(resolve, 200));
    return undefined;
  });
  for (const taskId of ['snoozed', 'fine', 'bad']) s.server.enqueue({ type: 'work', taskId, ...once });
  await s.server.until('all are over', () => ['snoozed', 'fine', 'bad'].every((id) => s.server.isOver(id)));
  const last = s.server.enqueue({ type: 'work' });
  await s.server.until('it is at work', () => s.server.task(last).state === 'RUNNING');
  s.server.end(last, 'RUN_TIMEOUT');
  s.server.intercept((r) => (r.path.endsWith('/heartbeat') ? { status: 503, body: { error: 'overloaded', message: '' } } : undefined));
  await s.server.clock.advance(10_500);
  const running = await registry.metrics();
  await s.server.until('its completion is refused', () => s.worker.activeCount === 0);
  s.server.intercept(undefined);
  await s.stop();
  const text = await registry.metrics();
  const value = (line: string, of = text) => {
    const found = of.split('\n').find((one) => one.startsWith(line + ' '));
    return found === undefined ? NaN : Number(found.slice(line.length));
  };
  for (const [line, expected] of [
    ['attempts_total{type="work",outcome="SUCCEEDED"}', 2],
    ['attempts_total{type="work",outcome="FAILED"}', 1],
    ['attempts_total{type="work",outcome="SNOOZED"}', 1],
    ['attempts_total{type="work",outcome="LOST"}', 1],
    ['retries_total{type="work"}', 1],
    ['attempt_duration_seconds_count{type="work",outcome="SUCCEEDED"}', 2],
    ['attempt_duration_seconds_sum{type="work",outcome="SUCCEEDED"}', 40],
    ['attempt_duration_seconds_bucket{le="10",type="work",outcome="SUCCEEDED"}', 0],
    ['attempt_duration_seconds_bucket{le="30",type="work",outcome="SUCCEEDED"}', 2],
    ['queue_wait_seconds_count{type="work"}', 5],
    ['first_heartbeat_seconds_count{type="work"}', 3],
    ['first_heartbeat_seconds_bucket{le="5",type="work"}', 0],
    ['first_heartbeat_seconds_bucket{le="30",type="work"}', 3],
    ['running_tasks', 0],
    ['claims_total{result="ok"}', 5],
    ['claimed_tasks_total', 5],
    ['refusals_total{code="task_already_terminal"}', 1],
  ] as const) {
    assert.equal(value('lubdub_worker_' + line), expected, `${line}\n${text}`);
  }
  // That of "bad"; "snoozed" was ready when that one ended. A claim may come after a heartbeat, which takes 200 ms.
  assert.equal(Math.floor(value('lubdub_worker_queue_wait_seconds_sum{type="work"}')), 20, text);
  assert.equal(value('lubdub_worker_running_tasks', running), 1);
  const beats = value('lubdub_worker_heartbeats_total{result="ok"}');
  const unanswered = value('lubdub_worker_heartbeats_total{result="unanswered"}');
  assert.ok(beats >= 5 && unanswered >= 1, `${beats} ${unanswered}`);
  assert.equal(value('lubdub_worker_heartbeat_duration_seconds_count'), beats + unanswered);
  assert.equal(value('lubdub_worker_heartbeat_duration_seconds_bucket{le="0.1"}'), unanswered);
  assert.equal(value('lubdub_worker_heartbeat_duration_seconds_bucket{le="0.5"}'), beats + unanswered);
  assert.ok(value('lubdub_worker_lease_left_ratio_bucket{le="1"}') >= 3);
  assert.equal(value('lubdub_worker_lease_left_ratio_bucket{le="0.1"}'), 0);
  const buckets = (name: string) => [...text.matchAll(new RegExp(`^lubdub_worker_${name}_bucket\\{le="([^"]+)`, 'gm'))].map(([, le]) => le);
  assert.deepEqual(buckets('lease_left_ratio'), '0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1 +Inf'.split(' '));
  assert.deepEqual(
    buckets('heartbeat_duration_seconds'),
    '0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 30 60 300 1800 7200 +Inf'.split(' '),
  );
  for (const [, name, help] of text.matchAll(/^# HELP (\S+) (.*)$/gm)) assert.match(`${name} ${help}`, /^lubdub_worker_\w+ [A-Z].*\.$/);
  assert.equal(text.match(/^# HELP/gm)!.length, 12);
});

test('clients that share a registry share its metrics, by default the registry of prom-client', async () => {
  const [first, second] = [prometheusMetrics(), prometheusMetrics()];
  first.claimed!('ok', 2);
  second.claimed!('refused', 1);
  const text = await register.metrics();
  assert.match(text, /^lubdub_worker_claimed_tasks_total 3$/m);
  assert.match(text, /^lubdub_worker_claims_total\{result="refused"\} 1$/m);
  register.clear();
});
