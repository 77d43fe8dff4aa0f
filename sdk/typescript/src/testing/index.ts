export { HandClock } from './hand.js';
export { FakeServer, type FakeServerOptions, type Replacement } from './server.js';
export type { FakeRequest, FakeTask, FakeWorker } from './state.js';
export { type HandlerRun, runHandler, type RunHandlerOptions } from './run.js';
