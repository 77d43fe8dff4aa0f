import { Counter, Gauge, Histogram, type Metric, register, type Registry } from 'prom-client';
import type { Metrics } from './metrics.js';

const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200];
const shares = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1];

/**
 * Registers the metrics of workers, by default with the default registry of prom-client, and returns the hooks for a client's `metrics`.
 * Clients that share a registry share its metrics; of several workers, lubdub_worker_running_tasks has the last value of any.
 */
export function prometheusMetrics(registry: Registry = register): Metrics {
  const known = <M extends Metric>(name: string, make: (name: string) => M): M =>
    (registry.getSingleMetric(`lubdub_worker_${name}`) as M | undefined) ?? make(`lubdub_worker_${name}`);
  const counter = <L extends string = never>(name: string, help: string, ...labelNames: L[]): Counter<L> =>
    known(name, (name) => new Counter({ name, help, labelNames, registers: [registry] }));
  const histogram = <L extends string = never>(name: string, help: string, labelNames: L[], buckets = seconds): Histogram<L> =>
    known(name, (name) => new Histogram({ name, help, labelNames, buckets, registers: [registry] }));

  const attempts = counter('attempts_total', 'Attempts that have ended, by their outcome.', 'type', 'outcome');
  const retries = counter('retries_total', 'Attempts that have ended and were not the first of their task.', 'type');
  const durations = histogram('attempt_duration_seconds', 'Time from the start of a handler until it returned.', ['type', 'outcome']);
  const waits = histogram('queue_wait_seconds', 'Time that a task was ready before it was claimed.', ['type']);
  const firsts = histogram('first_heartbeat_seconds', 'Time from the start of a handler until its first heartbeat was accepted.', ['type']);
  const running = known('running_tasks', (name) => new Gauge({ name, help: 'Tasks that are running.', registers: [registry] }));
  const claims = counter('claims_total', 'Claims, by their result: ok, refused or unanswered.', 'result');
  const claimed = counter('claimed_tasks_total', 'Tasks that claims returned.');
  const beats = counter('heartbeats_total', 'Heartbeat requests, by their result: ok, refused or unanswered.', 'result');
  const beatDurations = histogram('heartbeat_duration_seconds', 'Time that a heartbeat request took.', []);
  const refusals = counter('refusals_total', 'Refused heartbeats and completions, by their code.', 'code');
  const left = histogram('lease_left_ratio', 'Share of the lease that was left when a heartbeat was accepted.', [], shares);

  return {
    beat(result, _attempts, tookMs) {
      beats.inc({ result });
      beatDurations.observe(tookMs / 1000);
    },
    refused: (code) => refusals.inc({ code }),
    leaseLeft: (ratio) => left.observe(ratio),
    claimed(result, tasks) {
      claims.inc({ result });
      claimed.inc(tasks);
    },
    running: (n) => running.set(n),
    ended({ type, attempt, outcome, durationMs, queueWaitMs, firstHeartbeatMs }) {
      attempts.inc({ type, outcome });
      durations.observe({ type, outcome }, durationMs / 1000);
      if (attempt > 1) retries.inc({ type });
      if (queueWaitMs !== undefined) waits.observe({ type }, queueWaitMs / 1000);
      if (firstHeartbeatMs !== undefined) firsts.observe({ type }, firstHeartbeatMs / 1000);
    },
  };
}
