// Tracks one attempt and blocks the event loop for the milliseconds that it is told, reporting progress meanwhile; then it ends well.
import { Client, type Lease, type TaskEnvelope } from 'lubdub';

const [envelope, spinMs, beats, lease] = process.argv.slice(2) as [string, string, 'thread' | 'inline', Lease];
const client = new Client(undefined, { beats, lease });
const answer = await client.run(JSON.parse(envelope) as TaskEnvelope, (attempt) => {
  const end = Date.now() + Number(spinMs);
  for (let i = 0; Date.now() < end; i++) if (lease !== 'strict' && i % 1_000_000 === 0) attempt.progress(Math.min(99, i / 1e7), 'spinning');
  return 'spun';
}).catch((error: Error) => ({ failed: error.name }));
console.log(JSON.stringify(answer));
client.close();
