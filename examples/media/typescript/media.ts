// Resizes clips with Lubdub. As a worker it runs the three steps of the pipeline; submit sends clips through it and awaits the results:
//
//   node media.js worker
//   node media.js submit http://127.0.0.1:8099 clip-1 clip-2
//
// LUBDUB_URL and LUBDUB_TOKEN name the deployment. A worker's token needs the role enroll, that of submit needs submitter.
import { createHash } from 'node:crypto';
import { Client, type EnqueueOptions, permanent, retryAfter, type Task, Worker } from 'lubdub';

const queue = 'media';

type Bytes = Buffer<ArrayBuffer>;

/** The payload of all three tasks. */
interface Clip {
  /** URL of the clip: frames in PPM, one after the other. */
  source: string;
  /** URL of the folder for its frames. */
  folder: string;
  /** URL where the result is published. */
  target: string;
  /** How many frames it has; 0 before it is fetched. */
  frames: number;
}

/** The output of publish. */
interface Published {
  frames: number;
  sha256: string;
}

/** Runs tasks until SIGTERM or Ctrl-C. */
async function work(): Promise<void> {
  const worker = new Worker(queue, { concurrency: 8 });
  worker.handle('fetch', fetchClip);
  worker.handle('resize', resize);
  worker.handle('publish', publish);
  await worker.runUntilSignal();
}

/** Stores the frames of a clip in its folder and returns how many there are. */
async function fetchClip({ payload: clip }: Task<Clip>, signal: AbortSignal): Promise<number> {
  let rest = await request('GET', clip.source, signal);
  let frames = 0;
  for (; rest.length > 0; frames++) {
    const { width, height, start } = header(rest);
    const end = start + 3 * width * height;
    await request('PUT', frameURL(clip, 'full', frames), signal, rest.subarray(0, end));
    rest = rest.subarray(end);
  }
  return frames;
}

/** Halves each frame. A checkpoint after each one lets the next attempt continue with the next frame. */
async function resize(task: Task<Clip>, signal: AbortSignal): Promise<number> {
  const clip = task.payload;
  const first = (task.lastCheckpoint as number | undefined) ?? 0;
  if (first > 0) console.error(`task ${task.id} of ${clip.source}: resumed at frame ${first}`);
  for (let i = first; i < clip.frames; i++) {
    const small = halve(await request('GET', frameURL(clip, 'full', i), signal));
    await request('PUT', frameURL(clip, 'small', i), signal, small);
    task.progress((100 * (i + 1)) / clip.frames, `frame ${i + 1} of ${clip.frames}`);
    task.checkpoint(i + 1);
  }
  return clip.frames;
}

/** Sends the resized clip to its target. All attempts of a task use the same key, so that the target publishes the clip once. */
async function publish({ id, payload: clip }: Task<Clip>, signal: AbortSignal): Promise<Published> {
  const frames: Bytes[] = [];
  for (let i = 0; i < clip.frames; i++) frames.push(await request('GET', frameURL(clip, 'small', i), signal));
  const small = Buffer.concat(frames);
  await request('PUT', clip.target, signal, small, { 'Idempotency-Key': id });
  return { frames: clip.frames, sha256: createHash('sha256').update(small).digest('hex') };
}

function frameURL(clip: Clip, size: 'full' | 'small', number: number): string {
  return `${clip.folder}/${size}/${String(number).padStart(4, '0')}.ppm`;
}

/** Reads the header of a PPM frame: width, height, and where the pixels start. */
function header(ppm: Bytes): { width: number; height: number; start: number } {
  const found = /^P6\n(\d+) (\d+)\n255\n/.exec(ppm.toString('latin1', 0, 40));
  const [start, width, height] = [found?.[0].length ?? 0, Number(found?.[1]), Number(found?.[2])];
  if (!(ppm.length >= start + 3 * width * height)) throw permanent(new Error('not a PPM frame'));
  return { width, height, start };
}

/** Averages each square of four pixels. */
function halve(ppm: Bytes): Bytes {
  const { width, height, start } = header(ppm);
  const row = 3 * width;
  const small: number[] = [];
  for (let y = 0; y + 1 < height; y += 2) {
    for (let x = 0; x + 1 < width; x += 2) {
      const pixel = start + y * row + 3 * x;
      for (let at = pixel; at < pixel + 3; at++) {
        // red, green and blue
        const sum = ppm[at]! + ppm[at + 3]! + ppm[at + row]! + ppm[at + row + 3]!;
        small.push(Math.floor((sum + 2) / 4));
      }
    }
  }
  return Buffer.concat([Buffer.from(`P6\n${width >> 1} ${height >> 1}\n255\n`), Buffer.from(small)]);
}

/** Makes an HTTP request and returns the body of the answer. Its errors state whether and when another attempt can help. */
async function request(method: string, url: string, signal: AbortSignal, body?: Bytes, headers?: Record<string, string>): Promise<Bytes> {
  const answer = await fetch(url, { method, signal, body, headers });
  const content = Buffer.from(await answer.arrayBuffer());
  if (answer.ok) return content;
  const error = new Error(`${method} ${url}: ${answer.status}`);
  if (answer.status === 503) throw retryAfter(error, 1000 * Number(answer.headers.get('Retry-After') ?? 1));
  if (answer.status === 404) throw permanent(error);
  throw error; // it is retried by the policy of the task
}

/** Sends clips through the pipeline, all at once, and prints the results as one line of JSON. */
async function submit(studio: string, names: string[]): Promise<void> {
  const client = new Client();
  const ends = await Promise.allSettled(names.map((name) => pipeline(client, studio, name)));
  const results = ends.map((end) => (end.status === 'fulfilled' ? end.value : { error: (end.reason as Error).message }));
  console.log(JSON.stringify(Object.fromEntries(names.map((name, i) => [name, results[i]]))));
  client.close();
  if (ends.some((end) => end.status === 'rejected')) process.exitCode = 1;
}

/** Runs the steps of one clip, each when the one before has succeeded. */
async function pipeline(client: Client, studio: string, name: string): Promise<Published> {
  const clip = { source: `${studio}/clips/${name}`, folder: `${studio}/files/${name}`, target: `${studio}/published/${name}`, frames: 0 };
  const run = async <Out>(type: string, options?: EnqueueOptions) => {
    const task = await client.enqueue(queue, type, clip, options);
    return client.result<Out>(task.taskId);
  };
  clip.frames = await run<number>('fetch');
  await run('resize');
  return run<Published>('publish', { delayMs: 1000 });
}

const [command, studio, ...names] = process.argv.slice(2);
if (command === 'worker' && studio === undefined) await work();
else if (command === 'submit' && studio !== undefined && names.length > 0) await submit(studio, names);
else {
  console.error('usage: media.js worker | media.js submit STUDIO CLIP [CLIP ...]');
  process.exitCode = 1;
}
