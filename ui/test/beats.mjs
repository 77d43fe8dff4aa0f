// A process that sends heartbeats of many workers at a steady rate: each sends one in `every` ms. It reports to its parent how many were
// accepted between "begin" and "end", and how long they took.
import http from 'node:http';

const [base] = process.argv.slice(2),
  tick = 10,
  most = 64; // ms; connections
const agent = new http.Agent({ keepAlive: true, maxSockets: most });
let took = [],
  began = 0,
  failed = '';

const beat = (worker) =>
  new Promise((done) => {
    const from = performance.now(),
      text = '{"activeCount":0}';
    const req = http.request(
      `${base}/v1/workers/${worker.id}/heartbeat`,
      {
        agent,
        method: 'POST',
        headers: { authorization: 'Bearer ' + worker.token, 'content-type': 'application/json', 'content-length': text.length },
      },
      (res) => {
        let got = '';
        res.on('data', (d) => {
          got += d;
        });
        res.on('end', () => {
          if (res.statusCode === 200) took.push(performance.now() - from);
          else if (res.statusCode !== 410) failed ||= `${worker.id}: ${res.statusCode} ${got}`; // some are taken offline
          done();
        });
      },
    );
    req.on('error', (e) => {
      failed ||= e.message;
      done();
    });
    req.end(text);
  });

process.on('message', (message) => {
  if (message.workers) {
    const { workers, every } = message,
      start = performance.now();
    let sent = 0,
      waiting = 0;
    setInterval(() => {
      for (const due = ((performance.now() - start) / every) * workers.length; sent < due && waiting < 1000; sent++) {
        waiting++;
        beat(workers[sent % workers.length]).then(() => {
          waiting--;
        });
      }
    }, tick);
  } else if (message === 'begin') {
    took = [];
    failed = '';
    began = performance.now();
  } else {
    const s = took.sort((a, b) => a - b),
      of = (share) => s[Math.floor(s.length * share)] ?? NaN;
    process.send({ rate: (s.length * 1000) / (performance.now() - began), p50: of(0.5), p99: of(0.99), failed });
  }
});
process.on('disconnect', () => process.exit());
