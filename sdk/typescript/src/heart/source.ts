/** The program of the thread that beats, in one piece. The build fills it in, from thread.ts. */
export const source: string = '';
