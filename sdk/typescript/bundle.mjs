// Writes the program of the heartbeat thread as one string, so that a bundle of the SDK in one file contains it too.
import { writeFileSync } from 'node:fs';
import { buildSync } from 'esbuild';

const { outputFiles } = buildSync({
  entryPoints: ['dist/beats/thread.js'],
  bundle: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20',
  write: false,
});
writeFileSync('dist/beats/source.js', `export const source = ${JSON.stringify(outputFiles[0].text)};\n`);
