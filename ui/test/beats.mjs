// Beats at a steady rate, from a process of its own; tells its parent how long they took between "begin" and "end".
import http from 'node:http';

const [base, at, admin] = process.argv.slice(2), perSecond = 1000, tasks = 200, tick = 10; // ms
const agent = new http.Agent({ keepAlive: true, maxSockets: 16 });

const call = (method, path, token, body) => new Promise((done, failed) => {
  const text = JSON.stringify(body);
  const req = http.request(`${base}/v1/${path}`, { agent, method, headers: { authorization: 'Bearer ' + token, 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) } }, (res) => {
    let got = '';
    res.on('data', (d) => { got += d; });
    res.on('end', () => res.statusCode < 300 ? done(got && JSON.parse(got)) : failed(new Error(`${path}: ${res.statusCode} ${got}`)));
  });
  req.on('error', failed);
  req.end(text);
});

const beating = [];
for (let i = 0; i < tasks; i++) {
  const t = await call('POST', `tasks?${at}`, admin, { type: 'beats', heartbeatIntervalMs: 10_000, heartbeatTimeoutMs: 600_000 });
  await call('POST', `tasks/${t.taskId}/started`, t.taskToken, { attempt: t.attempt, workerId: 'beats' });
  beating.push(t);
}
let took = [], began = 0, sent = 0, next = 0;
const start = performance.now();
setInterval(() => {
  for (const due = (performance.now() - start) / 1000 * perSecond; sent < due; sent++) {
    const t = beating[next++ % tasks], from = performance.now();
    call('POST', `tasks/${t.taskId}/heartbeat`, t.taskToken, { attempt: t.attempt, progressPct: 1 }).then(() => took.push(performance.now() - from), (e) => { console.error(e.message); process.exit(1); });
  }
}, tick);
process.on('message', (word) => {
  if (word === 'begin') { took = []; began = performance.now(); return; }
  const s = took.sort((a, b) => a - b), of = (share) => s[Math.floor(s.length * share)] ?? NaN;
  process.send({ rate: s.length * 1000 / (performance.now() - began), p50: of(0.5), p99: of(0.99) });
});
process.on('disconnect', () => process.exit());
process.send('ready');
