export { HandClock } from './hand.js';
export { FakeServer, type FakeServerOptions, type Replacement } from './server.js';
export type { FakeRequest, FakeTask, FakeWorker } from './state.js';
