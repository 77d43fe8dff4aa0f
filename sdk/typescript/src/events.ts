import { type Call, type Caller, maxPause, operation } from './call.js';
import { eachUntilAborted, link } from './abort.js';
import { backoff } from './clock.js';
import { AnswerError, mayRetry, retryAfterOf, UnansweredError } from './errors.js';
import { isObject } from './answers.js';
import type { Answer } from './transport.js';
import type { Event, EventGap } from './types.js';

export interface EventsOptions {
  /** Ends the stream, which throws the signal's reason. */
  signal?: AbortSignal;
  /** Called when events are missing; the stream resumes after the gap. */
  onGap?: (gap: EventGap) => void;
}

/** Three times the server's keepalive interval, in ms. */
const quiet = 45_000;

/** The limit of a line, in characters. */
const maxLine = 4 << 20;

/** An event stream for one reader. It reconnects where it left off whenever its connection ends. */
export class EventStream implements AsyncIterable<Event> {
  readonly #caller: Caller;
  readonly #query: URLSearchParams;
  readonly #options: EventsOptions;
  #cursor = '';
  #pause = 0; // the server's wish

  /** @internal */
  constructor(caller: Caller, query: URLSearchParams, options: EventsOptions) {
    this.#caller = caller;
    this.#query = query;
    this.#options = options;
  }

  /**
   * The position in the stream: another query with `after` set to it continues after the last event that was returned. Store it if events
   * must not be missed across restarts. Empty before the first answer.
   */
  get cursor(): string {
    return this.#cursor;
  }

  /**
   * Yields events until the signal ends, whose reason is thrown. Lost connections, server restarts and a slow reader are not errors: the
   * stream reconnects where it was. A refusal is thrown.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<Event, void, undefined> {
    const { signal } = this.#options;
    for (let failures = 0; ;) {
      let pause: number;
      try {
        for await (const event of this.#listen()) {
          failures = 0;
          yield event;
          signal?.throwIfAborted(); // before what was already received
        }
        pause = this.#pause; // the server closed the stream and sent a reconnection time
      } catch (error) {
        if (!mayRetry(error)) throw error;
        pause = retryAfterOf(error) + backoff(failures++, maxPause);
      }
      await this.#caller.pause(pause, signal);
    }
  }

  /** Opens the stream once and yields its events. */
  async *#listen(): AsyncGenerator<Event, void, undefined> {
    const { clock } = this.#caller.set;
    const silence = new AbortController();
    const watch = () => clock.setTimeout(() => silence.abort(), quiet);
    let watching = watch();
    const ended = link(silence.signal, this.#caller.closing, this.#options.signal);
    const call = this.#call(ended.signal);
    try {
      const lines = await this.#caller.withToken(call, (token) => this.#open(call, token, ended.signal));
      let message = new Message();
      for await (const line of lines) {
        watching.cancel();
        watching = watch();
        if (line !== '') {
          message.add(line);
          continue;
        }
        this.#pause = message.retry || this.#pause;
        if (message.id) this.#cursor = message.id;
        if (message.event === 'lagged' || message.event === 'end') return;
        if (message.event === 'gap') this.#options.onGap?.(parseObject<EventGap>(message.data));
        else if (message.data && (message.event === '' || message.event === 'message')) yield parseObject<Event>(message.data);
        message = new Message();
      }
    } catch (error) {
      throw silence.signal.aborted ? new UnansweredError(operation(call), 'the stream is silent', false) : error;
    } finally {
      watching.cancel();
      ended.release();
      silence.abort();
    }
  }

  /** The connection outlives the call that opens it: it ends with the stream. */
  #call(signal: AbortSignal): Call {
    const query = new URLSearchParams(this.#query);
    const headers: Record<string, string> = { Accept: 'text/event-stream' };
    if (this.#cursor) {
      query.delete('after');
      headers['Last-Event-ID'] = this.#cursor;
    }
    return { method: 'GET', path: '/v1/events', query, headers, lasting: true, signal };
  }

  async #open(call: Call, token: string, ended: AbortSignal): Promise<AsyncIterable<string>> {
    const res = await this.#caller.request(call, token, ended, (answer) => answer);
    return linesOf(operation(call), res, ended);
  }
}

async function* linesOf(op: string, res: Answer, ended: AbortSignal): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for await (const part of eachUntilAborted(res.body ?? [], ended)) {
      rest += decoder.decode(part, { stream: true });
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? '';
      if (rest.length > maxLine) throw new AnswerError(`lubdub: ${op}: a line is longer than ${maxLine >> 20} Mi characters`);
      yield* lines;
    }
  } catch (error) {
    if (error instanceof AnswerError) throw error;
    throw new UnansweredError(op, error instanceof Error ? error.message : String(error), false, error);
  }
  throw new UnansweredError(op, 'the connection has ended', false);
}

function parseObject<T>(data: string): T {
  try {
    const found: unknown = JSON.parse(data);
    if (isObject(found)) return found as T;
  } catch {
    // not an object either
  }
  throw new AnswerError('lubdub: GET /v1/events: an event is not a JSON object');
}

/** One message of a stream of server-sent events. */
class Message {
  event = '';
  data = '';
  size = 0;
  id = '';
  retry = 0;

  add(line: string): void {
    this.size += line.length + 1;
    if (this.size > maxLine) throw new AnswerError(`lubdub: GET /v1/events: a message is longer than ${maxLine >> 20} Mi characters`);
    const at = line.indexOf(':');
    const name = at < 0 ? line : line.slice(0, at);
    const value = at < 0 ? '' : line.slice(at + 1).replace(/^ /, '');
    if (name === 'event') this.event = value;
    else if (name === 'id') this.id = value;
    else if (name === 'data') this.data += (this.data && '\n') + value;
    else if (name === 'retry' && /^\d{1,9}$/.test(value)) this.retry = Number(value);
  }
}
