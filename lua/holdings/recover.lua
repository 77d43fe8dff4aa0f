-- Purpose: takes attempts from a worker that does not have them any more: it has ended, or does not know of them.
-- Guarantees: each is checked again to be held by that worker, so a completion that came in between wins; two callers cannot
--   take the same one; the transition, its evidence and its events are one step.
-- KEYS: 1–12 the shard's fixed keys (lib/shard.lua), then five for each task: lubdub:{shard}:task:<scope>/<id>,
--   …:doc:<scope>/<id>, …:history:<scope>/<id>, …:run:<scope>/<run>, …:beats:<timeoutMs>
-- ARGV: 1 who takes them, 2 retention ms, 3 1 if they count as lost, else '', 4 the worker's last heartbeat wall ms or '', 5
--   its silence ms or '', 6 its timeout ms or '', 7 why it does not have them any more or '', 8 ms since its last heartbeat
--   that did not count or '', 9 1 if the mass-expiry brake had held it, else '', 10 since when they could have been taken,
--   wall ms or '', then scope, id and entry in held for each task
-- Reply: for each task 0 (not taken), 1 (failed), 2 (requeued) or 7 (failed, since its retries are used up)
-- Cost: O(log n) for each; at most 25 a call
--#include lib/clock.lua
--#include lib/shard.lua
--#include lib/task.lua
--#include lib/ending.lua
--#include lib/bulk.lua
local EXHAUSTED = 7
local L = shard_time(CLOCK)
local function given(i) return ARGV[i] ~= '' and ARGV[i] or nil end
local v = {outcome = 'LOST', reason = 'WORKER_LOST', lag = math.max(0, now - (given(10) or now)), sweeper = ARGV[1],
  L = L, retryable = ARGV[3] == '1', loss = true, uncounted = ARGV[3] == '', last = given(4), silent = given(5),
  timeout = given(6), worker_reason = given(7), credit = given(8), held = ARGV[9] == '1'}
local reply = {}
for n = 1, (#ARGV - 10) / 3 do
  local scope, id, entry = unpack(ARGV, 3 * n + 8, 3 * n + 10)
  local task = open_task(TASKS + KEYS_PER_TASK * (n - 1), scope, id)
  local f = task.f
  local result = 0
  if redis.call('ZSCORE', HELD, entry) then
    if f and (f.s == 'D' or f.s == 'R') and held_by(task) and held_entry(task) == entry then
      local took, exhausted = verdict(task, v, tonumber(ARGV[2]))
      result = exhausted and EXHAUSTED or took
    else -- an entry without a record
      write('ZREM', HELD, entry)
    end
  end
  reply[n] = result
end
write_all()
return reply
