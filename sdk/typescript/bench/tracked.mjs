// The CPU cost of 1,000 tracked tasks at an interval of 10 s, in percent of a core, over a minute. The server is another process. `npm run
// bench` prints it; nothing depends on it.
import { fork } from 'node:child_process';
import { createServer } from 'node:http';
import { Client } from 'lubdub';

const tasks = Number(process.env.TASKS ?? 1000);
const seconds = Number(process.env.SECONDS ?? 60);
const intervalMs = 10_000;

if (process.argv[2] === 'server') {
  let requests = 0;
  const server = createServer(async (req, res) => {
    let body = '';
    for await (const part of req) body += part;
    const serverTime = new Date().toISOString();
    const beats = body ? (JSON.parse(body).heartbeats ?? []) : [];
    if (beats.length > 0) requests++;
    const results = beats.map(({ taskId }) => ({
      taskId,
      status: 200,
      acknowledged: true,
      shouldCancel: false,
      serverTime,
      nextHeartbeatMs: intervalMs,
    }));
    res.end(JSON.stringify(req.url === '/requests' ? { requests } : { acknowledged: true, serverTime, results }));
  }).listen(0, '127.0.0.1', () => process.send(server.address().port));
} else {
  const server = fork(process.argv[1], ['server']);
  const port = await new Promise((resolve) => server.once('message', resolve));
  const url = `http://127.0.0.1:${port}`;
  const client = new Client(url);
  const counted = async () => (await (await fetch(url + '/requests')).json()).requests;
  const attempts = [];
  for (let i = 0; i < tasks; i++) {
    const taskId = `task_${i}`;
    const attempt = client.track({
      taskId,
      attempt: 1,
      taskToken: 'x'.repeat(300),
      callbackBaseUrl: url,
      heartbeatIntervalMs: intervalMs,
      heartbeatTimeoutMs: 3 * intervalMs,
    });
    await attempt.started;
    attempts.push(attempt);
  }
  await new Promise((resolve) => setTimeout(resolve, 2 * intervalMs)); // until all share one request
  const before = { cpu: process.cpuUsage(), requests: await counted(), at: process.hrtime.bigint() };
  const moving = setInterval(() => attempts.forEach((a, i) => a.progress(i % 100, 'moving')), 1000);
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  clearInterval(moving);
  const { user, system } = process.cpuUsage(before.cpu);
  const took = Number(process.hrtime.bigint() - before.at) / 1e3;
  const requests = (await counted()) - before.requests;
  const percent = ((100 * (user + system)) / took).toFixed(2);
  const rssMiB = process.memoryUsage.rss() >> 20;
  console.log(JSON.stringify({ tasks, intervalMs, seconds, requests, percentOfACore: Number(percent), rssMiB }));
  client.close();
  server.kill();
}
