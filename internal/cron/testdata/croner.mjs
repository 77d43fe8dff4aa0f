// Reads lines of JSON, each an expression with the times from which to walk, and answers of each how many fires croner has
// and what they come to. All times are seconds since the epoch, all days UTC.
import { createInterface } from "node:readline";
import { Cron } from "croner";

for await (const line of createInterface({ input: process.stdin })) {
  const { cron, starts, until, limit } = JSON.parse(line);
  const schedule = new Cron(cron, { timezone: "UTC", domAndDow: true, mode: "auto", paused: true });
  let fires = 0, sum = 0, first = 0, last = 0;
  for (const start of starts) {
    let at = new Date(start * 1000);
    for (let n = 0; n < limit; n++) {
      at = schedule.nextRun(at);
      if (at === null || at.getTime() > until * 1000) break;
      last = at.getTime() / 1000;
      first = first || last;
      sum = Math.imul(sum ^ last, 16777619) >>> 0;
      fires++;
    }
  }
  console.log(JSON.stringify({ fires, sum, first, last }));
}
