// Incidents with real processes: `lubdub status` alone and the Overview alone name the cause and a remedy that works, before anything else.
// SCREENSHOTS=docs saves how the Overview looks then for docs/troubleshooting.md.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { axeViolations, launch, patience, show, visit } from './browser.mjs';
import { binary, mint, open, redisCommands, root, until } from './stage.mjs';

const scope = { tenantId: 'acme', workspaceId: 'prod' },
  at = 'tenantId=acme&workspaceId=prod';
const images = process.env.SCREENSHOTS === 'docs' ? join(root, 'docs/images/incidents') : '';
let browser;

before(async () => {
  if (images) mkdirSync(images, { recursive: true });
  browser = await launch();
});
after(() => browser?.close());

// incident plays one in its own deployment. play gets a Desk.
function incident(name, play) {
  test(name, async (t) => {
    const stage = await open({
      fleet: false,
      interval: '1s',
      tenants: [],
      with: ['--worker-timeout-multiplier', '5'],
      redisWith: ['--appendonly', 'yes'],
    });
    try {
      await play(await Desk.open(t, stage));
    } finally {
      await stage.close();
    }
  });
}

// Desk is an operator's: a shell with the CLI, and the Overview in a browser.
class Desk {
  static async open(t, stage) {
    const desk = new Desk();
    Object.assign(desk, { t, stage, token: mint('operator', scope.tenantId, scope.workspaceId) });
    desk.enrol = mint('enroll', scope.tenantId, scope.workspaceId);
    desk.page = await visit(browser, stage, desk.token, { scope });
    desk.page.tolerated.push(503);
    await show(desk.page, '');
    return desk;
  }

  // shell runs a command line as an operator would type it, and returns what it printed and its exit code.
  shell(line) {
    const env = {
      PATH: `${dirname(binary)}:${process.env.PATH}`,
      HOME: this.stage.folder,
      LUBDUB_URL: this.stage.base,
      LUBDUB_TOKEN: this.token,
    };
    return new Promise((done) => execFile('sh', ['-c', line], { env }, (e, out, err) => done({ out: out + err, code: e ? e.code : 0 })));
  }

  // hire starts workers and waits until they are online. A worker that `restarts` starts again when its process ends, as systemd would do.
  async hire(n, { version = '1.9', restarts = false } = {}) {
    const program = join(root, 'ui/test/worker.mjs');
    const env = { ...process.env, LUBDUB_URL: this.stage.base, LUBDUB_TOKEN: this.enrol };
    const crew = Array.from({ length: n }, (_, i) => ({ name: `mailer-${version}-${i}`, machineId: `host-${i % 5}` }));
    for (const w of crew) {
      w.start = () => {
        w.process = this.stage.start(process.execPath, [program, w.name, w.machineId, version], env);
        if (restarts) w.process.once('exit', () => this.stage.open && w.start());
      };
      w.start();
    }
    await this.online(crew);
    return crew;
  }

  // online waits until each process has a worker, and sets its id.
  async online(crew) {
    await until('the workers are online', async () => {
      const { workers } = await this.get('workers?pageSize=100&status=ONLINE');
      return crew.every((w) => (w.id = workers.find((v) => v.name === w.name && v.pid === w.process.pid)?.workerId));
    });
  }

  get(path) {
    return this.call('GET', `${path}${path.includes('?') ? '&' : '?'}${at}`);
  }

  // call repeats a request that an overloaded server refused, as its response asks for: it has changed nothing.
  call(...request) {
    return until(`${request[1]} is answered`, () =>
      this.stage.call(...request).catch((e) => {
        if (!/: 503 \{"error":"overloaded"/.test(e.message)) throw e;
      }),
    );
  }

  async create(n, type, more = {}) {
    const task = { ...scope, queue: 'mail', type, retry: { maxAttempts: 1, maxLosses: 9, initialBackoffMs: 0 }, ...more };
    const { results } = await this.call('POST', `tasks:batch?${at}`, { tasks: Array.from({ length: n }, () => task) });
    return results.map((r) => r.taskId);
  }

  ended(ids, state) {
    return until(`${ids} are ${state}`, async () =>
      (await Promise.all(ids.map((id) => this.get(`tasks/${id}`)))).every((t) => t.state === state),
    );
  }

  // timedOut is when the last of some workers that fell silent could be known to be dead.
  async timedOut(ids) {
    const all = await Promise.all(ids.map((id) => this.get(`workers/${id}`)));
    return Math.max(...all.map((w) => Date.parse(w.lastHeartbeatAt) + w.heartbeatTimeoutMs));
  }

  // status is the first of what `lubdub status` prints: the title, the finding and what to do.
  async status() {
    const { out, code } = await this.shell('lubdub status');
    const [, title] = /\nFindings\n {2}(.*)\.\n/.exec(out) ?? [];
    const [, finding] = /^ {2}(?:Lubdub|workers): +(?:warn|fail) (.*)$/m.exec(out) ?? [];
    const [, remedy] = /\nWhat to do\n {2}- (.*)\n/.exec(out) ?? [];
    return { title, finding, remedy, code };
  }

  // overview is the same of the Overview's banner.
  overview() {
    return this.page.evaluate(() => {
      const banner = document.querySelector('main .banner'),
        text = (selector) => banner?.querySelector(selector)?.textContent;
      const codes = [...(banner?.querySelectorAll('li b') ?? [])].map((b) => b.textContent);
      return { title: text('h2'), finding: text('p'), remedy: text('li')?.replace(/^\S+ /, ''), codes };
    });
  }

  // sees waits until both show a cause first. `since` is when it could be known, in ms, or finds that out. It returns the finding.
  async sees(name, want, since) {
    const is = (seen) => seen.title === want.title && want.finding.test(seen.finding ?? '') && want.remedy.test(seen.remedy ?? '');
    const first = async (what, look) => {
      let seen;
      for (const end = Date.now() + patience; Date.now() < end; await new Promise((r) => setTimeout(r, 100))) {
        seen = await look();
        if (is(seen)) return { seen, when: Date.now() };
      }
      throw new Error(`${what} never shows it first: ${JSON.stringify(seen, null, 2)}`);
    };
    const [status, overview] = await Promise.all([
      first('lubdub status', () => this.status()),
      first('the Overview', () => this.overview()),
    ]);
    if (images) await this.page.screenshot({ path: join(images, `${name}.png`) });
    assert.equal(status.seen.code, want.code ?? 0);
    assert.deepEqual(await axeViolations(this.page), []);
    const fact = typeof since === 'function' ? await since() : since;
    const seconds = ({ when }) => `${(Math.max(0, when - fact) / 1000).toFixed(1)} s`;
    this.t.diagnostic(`${want.title}: status after ${seconds(status)}, Overview after ${seconds(overview)}`);
    return status.seen;
  }

  // over waits until neither shows a cause: neither its title first, nor a warning or failure with its code.
  async over(title, code) {
    await until(`status no longer says ${title}`, async () => {
      const { out } = await this.shell('lubdub status -o json');
      const over = out.startsWith('{') && JSON.parse(out).findings.every((f) => f.code !== code || f.severity === 'ok');
      return over && (await this.status()).title !== title;
    });
    await until(`the Overview no longer says ${title}`, async () => {
      const { title: now, codes } = await this.overview();
      return now !== title && !codes.includes(code);
    });
  }

  // why runs the command of a remedy that begins with "lubdub why", and checks that it names the cause.
  async why(remedy, ...names) {
    const { out, code } = await this.shell(/lubdub why [^;]+/.exec(remedy)[0]);
    assert.equal(code, 0, out);
    for (const name of names) assert.match(out, name);
  }
}

incident('a worker process is killed while it has tasks', async (desk) => {
  const crew = await desk.hire(4);
  const tasks = await desk.create(8, 'parcel');
  const dead = await until('a worker has tasks', async () => {
    const { workers } = await desk.get('workers?status=ONLINE');
    return (
      workers.reduce((n, w) => n + w.heldCount, 0) === tasks.length &&
      crew.find((w) => workers.some((v) => v.workerId === w.id && v.heldCount > 0))
    );
  });
  const held = (await desk.get(`tasks?workerId=${dead.id}`)).tasks.map((t) => t.taskId);
  dead.process.kill('SIGKILL');
  const { remedy } = await desk.sees(
    'killed',
    {
      title: 'Working, but workers were lost recently',
      finding: new RegExp(
        `^1 worker lost in the last hour while holding ${held.length} attempts? \\(${held.length} requeued\\): ${dead.name} on`,
      ),
      remedy: new RegExp(`^lubdub why ${dead.id}$`),
    },
    () => desk.timedOut([dead.id]),
  );
  await desk.why(remedy, /HEARTBEAT_TIMEOUT/, new RegExp(`Outcome of ${held.length} tasks? that it lost:\n  ${held[0].slice(0, 4)}`));
  await desk.ended(held, 'SUCCEEDED');
});

incident('three of ten workers flap', async (desk) => {
  const crew = await desk.hire(10),
    flapping = crew.slice(0, 3),
    lost = [];
  for (let i = 0; i < 3; i++) {
    for (const w of flapping) {
      lost.push(w.id);
      w.process.kill('SIGKILL');
      w.start();
    }
    await desk.online(flapping);
  }
  const { remedy } = await desk.sees(
    'flapping',
    {
      title: 'Working, but workers are repeatedly lost and come back',
      finding: /^3 workers are flapping \(repeatedly lost and back\): mailer-1.9-\d on host-\d, queue mail \(3 times in 24 h\)/,
      remedy: /^look there for restarts, OOM kills and network trouble: lubdub why wkr_\w+$/,
    },
    () => desk.timedOut(lost),
  );
  await desk.why(remedy, /timed out 3 times/);
});

incident('a task kills each worker that runs it', async (desk) => {
  await desk.hire(5, { restarts: true });
  const title = 'Working, but a task may be killing its workers';
  const [bomb] = await desk.create(1, 'bomb');
  const { remedy } = await desk.sees(
    'poison',
    {
      title,
      finding: new RegExp(`^Task ${bomb} \\(queue mail, type bomb, \\w+\\) was running on \\d+ workers when they were lost`),
      remedy: new RegExp(`^lubdub why ${bomb}; if the task is the cause: lubdub task cancel ${bomb}$`),
    },
    async () => {
      const { poisonTasks } = await desk.get('system');
      return desk.timedOut([poisonTasks[0].workers.at(-3).workerId]);
    },
  );
  await desk.why(remedy, /ended LOST \(WORKER_LOST\)/);
  assert.equal((await desk.shell(remedy.split(': ')[1])).code, 0);
  await desk.over(title, 'poison-task');
  await desk.ended(await desk.create(20, 'letter'), 'SUCCEEDED');
});

incident('a paused queue has waiting tasks', async (desk) => {
  await desk.hire(2);
  assert.equal((await desk.shell('lubdub queue pause mail')).code, 0);
  const tasks = await desk.create(3, 'letter');
  const title = 'Working, but a queue with waiting tasks is paused';
  const { remedy } = await desk.sees(
    'paused',
    { title, finding: /^1 queue is paused: mail \(3 tasks waiting\)\./, remedy: /^lubdub queue resume mail$/ },
    Date.now(),
  );
  assert.equal((await desk.shell(remedy)).code, 0);
  await desk.over(title, 'queue');
  await desk.ended(tasks, 'SUCCEEDED');
});

incident('Redis is frozen', async (desk) => {
  const crew = await desk.hire(3),
    since = Date.now(),
    title = 'Redis is not responding; timeouts are paused';
  desk.stage.redis.kill('SIGSTOP');
  const { remedy } = await desk.sees(
    'frozen',
    { title, finding: /^Redis 127\.0\.0\.1:\d+ is not responding/, remedy: /^restore Redis; to check the connection/, code: 5 },
    since,
  );
  const check = await desk.shell(/lubdub doctor --redis [^;]+/.exec(remedy)[0]);
  assert.ok(check.code !== 0 && /not respond|timeout/.test(check.out), check.out);
  desk.stage.redis.kill('SIGCONT');
  await desk.over(title, 'redis');
  for (const w of crew) assert.equal((await desk.get(`workers/${w.id}`)).status, 'ONLINE');
  await desk.ended(await desk.create(3, 'letter'), 'SUCCEEDED');
});

incident('Redis is full', async (desk) => {
  const crew = await desk.hire(3),
    title = 'Redis is full and rejects writes';
  const set = (bytes) => redisCommands(desk.stage.redisPort, [['CONFIG', 'SET', 'maxmemory', bytes]]);
  await set(1 << 20);
  const since = Date.now();
  const refused = () =>
    desk.stage.call('POST', `tasks?${at}`, { queue: 'mail', type: 'letter' }).then(
      () => '',
      (e) => e.message,
    );
  await until('tasks are refused', async () => / 503 /.test(await refused()));
  const { remedy } = await desk.sees(
    'full',
    {
      title,
      finding: /^Redis 127\.0\.0\.1:\d+ uses \d+ MiB of 1 MiB\. It is at its memory limit and rejects writes\./,
      remedy: /raise maxmemory/,
      code: 1,
    },
    since,
  );
  await set(1 << 30);
  await desk.over(title, 'redis-memory');
  await desk.ended(await desk.create(3, 'letter'), 'SUCCEEDED');
  for (const w of crew) assert.equal((await desk.get(`workers/${w.id}`)).status, 'ONLINE');
});

incident('one version of the workers fails', async (desk) => {
  const crew = await desk.hire(6),
    failing = await desk.hire(2, { version: '2.0' });
  const ended = async (ids) => {
    const tasks = await until('the tasks have ended', async () => {
      const all = await Promise.all(ids.map((id) => desk.get(`tasks/${id}`)));
      return all.every((t) => /SUCCEEDED|FAILED/.test(t.state)) && all;
    });
    return tasks.filter((t) => t.state === 'FAILED').length;
  };
  let failures = 0;
  await until('version 2.0 has reported enough failures', async () => (failures += await ended(await desk.create(20, 'letter'))) >= 10);
  const { remedy } = await desk.sees(
    'failures',
    {
      title: 'Working, but workers report failures',
      finding: new RegExp(
        `^Workers reported ${failures} attempts as failed in the last five minutes, and \\d+ tasks succeeded: ` +
          `${failures} x .*no template for .*All of the first group ran on version 2\\.0, which 2 of the 8 workers`,
      ),
      remedy: /^lubdub why \w+; if that version is the cause: lubdub worker cordon --version=2\.0 --queue mail, and roll it back$/,
    },
    Date.now(),
  );
  await desk.why(remedy, /no template for 2\.0/);
  // A terminal asks before it acts on many, a script passes --yes.
  const cordon = /lubdub worker cordon [^,]+/.exec(remedy)[0],
    asked = await desk.shell(cordon);
  assert.ok(asked.code !== 0 && /this would cordon 2 workers .*pass --yes/.test(asked.out), asked.out);
  const { code, out } = await desk.shell(`${cordon} --yes`);
  assert.equal(code, 0, out);
  assert.match(out, /^2 of 2 workers: done/);
  for (const w of failing) assert.notEqual((await desk.get(`workers/${w.id}`)).cordon, null);
  for (const w of crew) assert.equal((await desk.get(`workers/${w.id}`)).cordon, null);
  await desk.ended(await desk.create(200, 'letter'), 'SUCCEEDED');
});
