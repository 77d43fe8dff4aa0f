// Tracks one attempt and blocks the event loop until a file exists, reporting progress; then it completes the attempt.
import { existsSync, writeSync } from 'node:fs';
import { Client, type Lease, type TaskEnvelope } from 'lubdub';

const [envelope, file, beats, lease] = process.argv.slice(2) as [string, string, 'thread' | 'inline', Lease];
const client = new Client(undefined, { beats, lease });
const answer = await client
  .run(JSON.parse(envelope) as TaskEnvelope, (attempt) => {
    writeSync(1, 'blocked\n');
    for (let i = 0; !existsSync(file); i++) if (lease !== 'strict') attempt.progress(i % 100, 'spinning');
    return 'spun';
  })
  .catch((error: Error) => ({ failed: error.name }));
writeSync(1, JSON.stringify(answer) + '\n');
client.close();
