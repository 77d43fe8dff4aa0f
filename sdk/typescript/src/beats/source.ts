/** The program of the heartbeat thread, in one string. The build fills it in, from thread.ts. */
export const source: string = '';
