-- Purpose: takes attempts whose start timeout (s), run timeout (r) or cancel grace (c) has passed in shard time.
-- Guarantees: each timer is checked again, against shard time and against the attempt that it was set for; two
--   sweepers cannot take the same one; the transition, its evidence and its events are one step.
-- KEYS: 1–12 the shard's fixed keys (lib/shard.lua), then five for each task: lubdub:{shard}:task:<scope>/<id>,
--   …:doc:<scope>/<id>, …:history:<scope>/<id>, …:run:<scope>/<run>, …:beats:<timeoutMs>
-- ARGV: 1 sweeper, 2 retention ms, 3 default cancel grace ms, then scope, id and timer for each task
-- Reply: for each task 0 (not taken), 1 (failed) or 2 (requeued) and the detection lag in ms
-- Cost: O(log n) for each; at most 16 a call
--#include lib/clock.lua
--#include lib/primary.lua
--#include lib/shard.lua
--#include lib/task.lua
--#include lib/ending.lua
--#include lib/cancel.lua
--#include lib/bulk.lua
local L = shard_time(CLOCK)
read_change(CLOCK)
local sweeper, retention = ARGV[1], tonumber(ARGV[2])
local reply = {}

-- A start that was accepted right before the primary changed may be lost, and its worker reports it again with its next
-- heartbeat: the start timer gives it one heartbeat timeout from the change on.
local function restart_by(at, f)
  local timeout = tonumber(f.t) or 0
  return math.min(changed, at) + (timeout > 0 and timeout or tonumber(f.so) or 0)
end

for n = 1, (#ARGV - 3) / 3 do
  local scope, id, timer = unpack(ARGV, 3 * n + 1, 3 * n + 3)
  local task = open_task(TASKS + KEYS_PER_TASK * (n - 1), scope, id)
  local at = tonumber(redis.call('ZSCORE', TIMERS, timer))
  local result, lag = 0, 0
  if at and at <= L then
    local kind, member, f = string.sub(timer, 1, 1), string.sub(timer, 3), task.f
    redis.call('ZREM', TIMERS, timer)
    local valid = f and member_of(task) == member and f.s == (kind == 's' and 'D' or 'R')
    local later = valid and kind == 's' and restart_by(at, f)
    if later and later > L then
      write('ZADD', TIMERS, digits(later), timer)
    elseif valid then
      lag = L - at
      local v = {outcome = 'TIMED_OUT', lag = lag, sweeper = sweeper, L = L}
      if kind == 's' then
        v.reason, v.retryable, v.loss, v.timeout = 'START_TIMEOUT', true, true, f.so
      elseif kind == 'r' then
        v.reason, v.retryable, v.timeout = 'RUN_TIMEOUT', true, f.rt
      else
        v.reason, v.timeout = 'CANCEL_TIMEOUT', unpack_cancel(redis.call('HGET', CANCELS, member)) or f.g or ARGV[3]
      end
      result = verdict(task, v, retention)
    end
  end
  reply[#reply + 1] = result
  reply[#reply + 1] = lag
end
write_all()
return reply
