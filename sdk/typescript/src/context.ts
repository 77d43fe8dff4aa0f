import type { Caller } from './call.js';
import type { Clock } from './clock.js';
import type { Endpoints } from './endpoints.js';
import type { Logger, Metrics } from './metrics.js';
import type { Connecting } from './transport.js';

/**
 * What becomes of tracked work while no server answers. patient: it goes on until a server says that it is over, since while all servers
 * or Redis are away their clock may stand still. strict: it is stopped when no beat was accepted for as long as the attempt may be silent,
 * counted from when the last one that was accepted left; for effects that must never overlap.
 */
export type Lease = 'patient' | 'strict';

/** How the client's requests travel, as another thread can be told it. */
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
