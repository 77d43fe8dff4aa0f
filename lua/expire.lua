-- Purpose: takes attempts that have been silent for longer than their heartbeat timeout: zombies.
-- Guarantees: each score is checked again against shard time, so a beat that came in between wins; two sweepers cannot
--   take the same one; the transition, its evidence and its events are one step.
-- KEYS: 1–12 the shard's fixed keys (lib/shard.lua), then five for each task: lubdub:{shard}:task:<scope>/<id>,
--   …:doc:<scope>/<id>, …:history:<scope>/<id>, …:run:<scope>/<run>, …:beats:<timeoutMs>
-- ARGV: 1 sweeper, 2 retention ms, 3 heartbeat timeout ms, then scope, id and member for each task
-- Reply: for each task 0 (not taken), 1 (failed) or 2 (requeued) and the detection lag in ms
-- Cost: O(log n) for each; at most 50 a call
--#include lib/clock.lua
--#include lib/shard.lua
--#include lib/task.lua
--#include lib/settle.lua
--#include lib/bulk.lua
local L = shard_time(CLOCK)
local sweeper, retention, timeout = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local beats, members = KEYS[TASKS + KEYS_PER_TASK - 1], {}
for n = 1, (#ARGV - 3) / 3 do members[n] = ARGV[3 * n + 3] end
local scores = redis.call('ZMSCORE', beats, unpack(members))
local reports = redis.call('HMGET', PROGRESS, unpack(members))
local reply = {}
for n, member in ipairs(members) do
  local score = tonumber(scores[n])
  local result, lag = 0, 0
  if score and L - score > timeout then
    local task = open_task(TASKS + KEYS_PER_TASK * (n - 1), ARGV[3 * n + 1], ARGV[3 * n + 2])
    if task.f and task.f.s == 'R' and member_of(task) == member then
      task.score, task.report = score, reports[n] or ''
      lag = L - score - timeout
      result = verdict(task, {outcome = 'ZOMBIE', reason = 'HEARTBEAT_TIMEOUT', timeout = ARGV[3], lag = lag,
        sweeper = sweeper, L = L, retryable = true, loss = true}, retention)
    else -- an entry that nothing stands behind
      write('ZREM', beats, member)
      write('HDEL', PROGRESS, member)
      write('HDEL', CANCELS, member)
    end
  end
  reply[#reply + 1] = result
  reply[#reply + 1] = lag
end
write_all()
return reply
