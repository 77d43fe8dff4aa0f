// Tracks one attempt and blocks the event loop for the milliseconds that it is told, reporting progress meanwhile; then it ends well.
import { Client, type TaskEnvelope } from 'lubdub';

const [envelope, spinMs, beats] = process.argv.slice(2) as [string, string, 'thread' | 'inline'];
const client = new Client(undefined, { beats });
const answer = await client.run(JSON.parse(envelope) as TaskEnvelope, (attempt) => {
  const end = Date.now() + Number(spinMs);
  for (let i = 0; Date.now() < end; i++) if (i % 1_000_000 === 0) attempt.progress(Math.min(99, i / 1e7), 'spinning');
  return 'spun';
});
console.log(JSON.stringify(answer));
client.close();
