// Writes the program of the thread that beats as one text, so that a bundle of the SDK in one file has it too.
import { writeFileSync } from 'node:fs';
import { buildSync } from 'esbuild';

const { outputFiles } = buildSync({
  entryPoints: ['dist/heart/thread.js'],
  bundle: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20',
  write: false,
});
writeFileSync('dist/heart/source.js', `export const source = ${JSON.stringify(outputFiles[0].text)};\n`);
