export { HandClock } from './hand.js';
export { FakeServer, type FakeServerOptions, type Instead } from './server.js';
export type { FakeRequest, FakeTask, FakeWorker } from './state.js';
