import assert from 'node:assert/strict';
import test from 'node:test';
import { sockets, until } from './sockets.js';

test('tasks that a waiting claim brings while the event loop is blocked are in the inventory at once, and are done afterwards', async (t) => {
  const { server, work, beats, close } = await sockets();
  t.after(close);
  const worker = work({ concurrency: 3 });
  server.enqueue({ type: 'block', taskId: 'first' });
  await until(() => worker.lines.includes('blocked first') && server.count('/v1/queues/default/claim') === 2);
  for (const taskId of ['second', 'third']) server.enqueue({ type: 'block', taskId });
  await until(() => server.task('second').attempt === 1);
  const before = beats().length;
  await until(() => beats().length >= before + 4);
  const named = beats().slice(before + 2).map((beat) => beat.tasks!.map((task) => task.taskId).sort());
  for (const tasks of named) assert.ok(tasks.includes('first') && tasks.includes('second'), tasks.join());
  worker.release();
  await until(() => ['first', 'second', 'third'].every((id) => server.isOver(id)));
  worker.child.kill('SIGTERM');
  assert.equal(await worker.ended, 0);
  assert.deepEqual(['first', 'second', 'third'].map((id) => server.task(id).attempt), [1, 1, 1]);
});
