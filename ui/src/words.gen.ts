// The sentences of lubdub why, written by: make generate
export const sentences = {
  decided: 'Decided by sweeper {sweeper} at {at}, {lag} after its deadline.',
  lastHeartbeat: 'Last heartbeat at {at}.',
  massExpiryHeld: 'The mass-expiry brake had held it, so it had a second timeout period.',
  noHeartbeat: 'No heartbeat was received.',
  noOutages: 'no outage time excluded',
  outages: '{credit} of outages excluded',
  retriesExhausted: 'It was retryable, but its retry policy is exhausted.',
  silent: 'Silent for {silent} (timeout {timeout}; {outages}).',
  silentNoTimeout: 'Silent for {silent} ({outages}).',
  workerHeartbeat: 'Last heartbeat of its worker at {at}.',
  workerLost: 'Its worker was lost ({reason}).',
};
export const unschedulable = {
  cordoned: 'it is cordoned',
  full: 'it holds {heldCount} of at most {maxConcurrent} tasks',
  stale: 'its heartbeat is overdue',
  status: 'its status is {status}',
};
