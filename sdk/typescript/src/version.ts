import { createRequire } from 'node:module';

/** That of the SDK. */
export const version: string = (createRequire(import.meta.url)('../package.json') as { version: string }).version;
