import { type MessagePort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { Caller } from '../call.js';
import type { Travel } from '../client.js';
import { machineClock } from '../clock.js';
import { Endpoints } from '../endpoints.js';
import { nodeTransport } from '../transport.js';
import { Heart } from './heart.js';
import type { Order } from './messages.js';

// The thread that beats, so that a program which blocks its event loop is not taken for dead.
const { port, travel } = workerData as { port: MessagePort; travel: Travel };
const { agent, allowHttp, timeoutMs } = travel;
const { fetch } = nodeTransport(travel.connecting);
const caller = new Caller({ base: new Endpoints(travel.urls), fetch, clock: machineClock, agent, allowHttp, timeoutMs, tries: 1 });
const heart = new Heart(caller, (news) => port.postMessage(news));
// All that waits is taken in before a beat is written, which is in a microtask.
port.on('message', (order: Order) => {
  heart.heed(order);
  for (let more = receiveMessageOnPort(port); more; more = receiveMessageOnPort(port)) heart.heed(more.message as Order);
});
