// Measures the cost of a hundred open dashboards: it records the requests of a real page, a hundred clients repeat them, and it compares the
// CPU time of server and Redis with and without them, in turn, while heartbeats arrive at a steady rate.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { loadavg } from 'node:os';
import { visit } from './browser.mjs';

const many = 100,
  turns = 3,
  opening = 6000,
  lasting = Number(process.env.WATCH ?? 20) * 1000; // ms
const allowed = 5; // % of a core
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
const median = (of) => [...of].sort((a, b) => a - b)[Math.floor(of.length / 2)];

// recorded returns the requests of an open Overview: the stream, and each call with its period.
async function recorded(stage, browser, all) {
  const page = await visit(browser, stage, stage.admin, { scope: all });
  const requests = new Map(),
    streams = [];
  page.on('request', (r) => {
    const path = r.url().slice(stage.origin.length);
    if (!path.includes('/v1/')) return;
    if (r.headers().accept === 'text/event-stream') {
      streams.push(path);
      return;
    }
    const key = path.replace(/steps=\d\d+/, 'steps=n');
    requests.set(key, { path, at: [...(requests.get(key)?.at ?? []), Date.now()] });
  });
  await page.reload();
  await sleep(25_000);
  await page.context().close();
  const calls = [...requests.values()]
    .filter((c) => c.at.length > 1)
    .map(({ path, at }) => ({ path, every: (at[at.length - 1] - at[0]) / (at.length - 1) }));
  return { calls, stream: streams[0] };
}

// client acts as one dashboard and returns the function that closes it.
function client(stage, { calls, stream }, counts) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 6 }),
    timers = [];
  const request = (path, accept, take) =>
    http
      .get(stage.origin + path, { agent, headers: { authorization: 'Bearer ' + stage.admin, accept } }, (res) => {
        if (res.statusCode !== 200) counts.refused++;
        res.on('data', (d) => {
          counts.bytes += d.length;
        });
        res.on('end', () => take?.());
      })
      .on('error', () => {
        if (!counts.over) counts.refused++;
      });
  const streaming = request(stream, 'text/event-stream');
  for (const { path, every } of calls) {
    const again = () => {
      counts.requests++;
      request(path, '*/*');
    };
    timers.push(
      setTimeout(() => {
        again();
        timers.push(setInterval(again, every));
      }, Math.random() * every),
    );
  }
  return () => {
    for (const t of timers) {
      clearTimeout(t);
      clearInterval(t);
    }
    streaming.destroy();
    agent.destroy();
  };
}

const ticks = 100; // per second, in which Linux counts CPU time
const used = (pid) => {
  const f = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(f[11]) + Number(f[12])) / ticks;
};

async function span(stage, beats) {
  const pids = [stage.server.pid, stage.redis.pid],
    before = pids.map(used),
    began = Date.now();
  beats.send('begin');
  await sleep(lasting);
  const report = new Promise((r, failed) => {
    beats.once('message', r);
    beats.once('exit', () => failed(new Error('the heartbeat process has ended')));
  });
  beats.send('end');
  const s = (Date.now() - began) / 1000,
    [server, redis] = pids.map((pid, i) => ((used(pid) - before[i]) / s) * 100);
  return { server, redis, ...(await report) };
}

export async function watchers(stage, browser, all) {
  const what = await recorded(stage, browser, all);
  console.log(`an open Overview streams ${what.stream.replace(/^.*\/v1/, '/v1')}, and requests`);
  for (const c of what.calls) console.log(`  every ${(c.every / 1000).toFixed(1)} s ${c.path.replace(/^.*\/v1/, '/v1')}`);
  const without = [],
    those = [];
  for (let i = 0; i < turns; i++) {
    without.push(await span(stage, all.beats));
    const counts = { requests: 0, bytes: 0, refused: 0, over: false };
    const open = Array.from({ length: many }, () => client(stage, what, counts));
    await sleep(opening);
    counts.requests = counts.bytes = 0;
    those.push({ ...(await span(stage, all.beats)), ...counts });
    counts.over = true;
    for (const close of open) close();
    await sleep(2000);
  }
  const line = (name, s) =>
    `  ${name}: server ${s.server.toFixed(1)} %, Redis ${s.redis.toFixed(1)} %; beats ${s.rate.toFixed(0)}/s, p50 ${s.p50.toFixed(2)} ms, p99 ${s.p99.toFixed(2)} ms` +
    (s.requests
      ? `; ${((s.requests * 1000) / lasting).toFixed(0)} calls/s, ${((s.bytes * 1000) / lasting / 1024).toFixed(0)} KiB/s, ${s.refused} refused`
      : '');
  for (let i = 0; i < turns; i++) console.log(line('without', without[i]) + '\n' + line(`with ${many}`, those[i]));
  const more = (of) => median(those.map((s, i) => of(s) - of(without[i]))),
    ratio = (of) => median(those.map((s, i) => of(s) / of(without[i])));
  const cost = more((s) => s.server + s.redis);
  console.log(
    `${many} dashboards: ${cost.toFixed(1)} % of a core (server ${more((s) => s.server).toFixed(1)}, Redis ${more((s) => s.redis).toFixed(1)}); beats with them by those without: ` +
      `p50 ${ratio((s) => s.p50).toFixed(2)}, p99 ${ratio((s) => s.p99).toFixed(2)}; load ${loadavg()[0].toFixed(1)}`,
  );
  const rate = ratio((s) => s.rate),
    wrong = [...without, ...those].find((s) => s.failed);
  return [
    ...(cost > allowed ? [`${many} dashboards take ${cost.toFixed(1)} % of a core`] : []),
    ...(those.some((s) => s.refused) ? ['dashboards were refused'] : []),
    ...(Math.abs(rate - 1) > 0.02 ? [`beats with them are ${rate.toFixed(2)} of those without`] : []),
    ...(wrong ? [`a beat failed: ${wrong.failed}`] : []),
  ];
}
