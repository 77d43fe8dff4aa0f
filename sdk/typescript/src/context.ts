import type { Caller } from './call.js';
import type { Clock } from './clock.js';
import type { Endpoints } from './endpoints.js';
import type { Logger, Metrics } from './metrics.js';
import type { Connecting } from './transport.js';

/**
 * What happens to tracked work while no server answers. patient: it continues until a server reports its end, since timeouts are paused
 * while all servers or Redis are down. strict: it is stopped when no heartbeat was accepted for the heartbeat timeout, counted from when
 * the last accepted one was sent; for effects that must never overlap.
 */
export type Lease = 'patient' | 'strict';

/** How to send the client's requests, in a form that another thread can receive. */
export interface Travel {
  urls: string[];
  agent: string;
  allowHttp: boolean;
  timeoutMs: number;
  connecting: Connecting;
}

/** What attempts and heartbeats need from the client they belong to. */
export interface Context {
  readonly caller: Caller;
  readonly travel: Travel;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly lease: Lease;
  endpointsFor(callback: string): Endpoints;
}
