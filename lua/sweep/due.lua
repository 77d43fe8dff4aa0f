-- Purpose: takes what is due in wall time: deadlines (d), backoffs and start times that have passed (b), retention (x), placed
--   tasks without a worker (p).
-- Guarantees: each entry is checked again, against wall time and against the task's own field; two sweepers cannot
--   take the same one; each transition, its evidence and its events are one step.
-- KEYS: 1–12 the shard's fixed keys (lib/shard.lua), then five for each task: lubdub:{shard}:task:<scope>/<id>,
--   …:doc:<scope>/<id>, …:history:<scope>/<id>, …:run:<scope>/<run>, …:beats:<timeoutMs>
-- ARGV: 1 sweeper, 2 retention ms, then scope, id and entry for each task
-- Reply: for each task 0 (not taken), 1 (failed), 3 (ready to be claimed), 4 (removed) or 5 (to be placed) and the lag in ms
-- Cost: O(log n) for each; at most 16 a call
--#include lib/clock.lua
--#include lib/shard.lua
--#include lib/task.lua
--#include lib/ending.lua
--#include lib/bulk.lua
local L = shard_time(CLOCK)
local sweeper, retention = ARGV[1], tonumber(ARGV[2])
-- A task without a worker is placed again after as long as it has already waited, within these bounds.
local PLACE_AGAIN_MS, MAX_PLACE_AGAIN_MS = 1000, 30000
local FORGET = 64 -- verdicts and reported failures of a scope that are older than any task, of each in a call
local forgotten = {}

-- Removes the oldest verdicts and reported failures of the task's scope that are past the retention, as the task is now.
local function forget_verdicts(task)
  if forgotten[task.scope] then return end
  forgotten[task.scope] = true
  for _, kind in ipairs({'(}', '(}!'}) do
    local first = kind .. task.scope .. '/'
    local old = redis.call('ZRANGEBYLEX', IX, first, first .. sortable(math.max(0, now - retention)), 'LIMIT', 0, FORGET)
    for _, entry in ipairs(old) do write('ZREM', IX, entry) end
  end
end

local reply = {}
for n = 1, (#ARGV - 2) / 3 do
  local scope, id, entry = unpack(ARGV, 3 * n, 3 * n + 2)
  local task = open_task(TASKS + KEYS_PER_TASK * (n - 1), scope, id)
  local at = tonumber(redis.call('ZSCORE', DUE, entry))
  local result, lag = 0, 0
  if at and at <= now then
    local kind, f = string.sub(entry, 1, 1), task.f
    local live = f and (f.s == 'Q' or f.s == 'D' or f.s == 'R')
    redis.call('ZREM', DUE, entry)
    if kind == 'd' and live and tonumber(f.x) == at then
      lag = now - at
      result = verdict(task, {outcome = 'TIMED_OUT', reason = 'DEADLINE_EXCEEDED', lag = lag,
        sweeper = sweeper, L = L}, retention)
    elseif kind == 'b' and live and f.s == 'Q' and f.n then
      lag, result = now - at, 3
      end_wait(task)
    elseif kind == 'x' and f and not live then
      lag, result = now - at, 4
      index(task, f.s, nil)
      if is_listed(f.z) then write('ZREM', IX, size_entry(task, f.z)) end
      forget_verdicts(task)
      redis.call('DEL', task.key, task.doc, task.history)
    elseif kind == 'p' and live and f.s == 'Q' and f.pl and not f.pn then
      result = f.n and 0 or 5
      local pause = math.max(PLACE_AGAIN_MS, math.min(now - (tonumber(f.rd) or now), MAX_PLACE_AGAIN_MS))
      redis.call('ZADD', DUE, f.n or now + pause, entry)
    end
  end
  reply[#reply + 1] = result
  reply[#reply + 1] = lag
end
write_all()
return reply
