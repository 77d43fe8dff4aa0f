-- Purpose: takes attempts that have been silent for longer than their heartbeat timeout: zombies.
-- Guarantees: each score is checked again against shard time, so a heartbeat that came in between wins; two sweepers cannot
--   take the same one; the transition, its evidence and its events are one step. A change of the primary counts as a
--   heartbeat.
-- KEYS: 1–12 the shard's fixed keys (lib/shard.lua), 13 lubdub:{shard}:beats:<timeoutMs>, then for each attempt
--   …:task:<scope>/<id>, …:history:<scope>/<id> and, if runs are passed, …:run:<scope>/<run>
-- ARGV: 1 sweeper, 2 retention ms, 3 heartbeat timeout ms, 4 arguments for each attempt: 1 or, if runs are passed, 2; then for
--   each attempt its member and, if runs are passed, its run
-- Reply: for each attempt two values: 0 (not taken), 1 (failed) or 2 (requeued) and the detection lag in ms; or 6 (not taken,
--   repeat the call with its run) and the run
-- Cost: O(log n) for each; at most 32 a call. The run of most tasks is named after them, so a sweeper first calls without
--   runs, which saves it from reading every record.
--#include lib/clock.lua
--#include lib/primary.lua
--#include lib/shard.lua
--#include lib/task.lua
--#include lib/ending.lua
--#include lib/bulk.lua
local NEEDS_RUN = 6
local L = shard_time(CLOCK)
local retention, timeout, words = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
read_change(CLOCK)
local beats, members, runs = KEYS[TASKS], {}, words == 2
for i = 5, #ARGV, words do members[#members + 1] = ARGV[i] end
local scores = redis.call('ZMSCORE', beats, unpack(members))
local reports = redis.call('HMGET', PROGRESS, unpack(members))
local v = {outcome = 'ZOMBIE', reason = 'HEARTBEAT_TIMEOUT', timeout = ARGV[3], sweeper = ARGV[1], L = L,
  retryable = true, loss = true}
local reply = {}
for n, member in ipairs(members) do
  local score, first = tonumber(scores[n]), TASKS + 1 + (words + 1) * (n - 1)
  local result, detail = 0, 0
  local since = score and silent_since(score, timeout)
  if score and L - since > timeout then
    local scope, id, name, attempt = task_in(member)
    local f = fields_at(KEYS[first])
    local task = {scope = scope, id = id, name = name, f = f, key = KEYS[first], history = KEYS[first + 1],
      run = runs and KEYS[first + 2], beats = beats, member = member, score = score, report = reports[n] or ''}
    if not f or f.s ~= 'R' or attempt ~= digits(f.a) .. '.' .. (f.f or '') then -- an entry without a record
      write('ZREM', beats, member)
      write('HDEL', PROGRESS, member)
      write('HDEL', CANCELS, member)
    elseif f.u and not (runs and ARGV[4 + 2 * n] == f.u) then
      result, detail = NEEDS_RUN, f.u
    else
      v.lag, v.forgiven = L - since - timeout, since - score
      result, detail = verdict(task, v, retention), v.lag
    end
  end
  reply[2 * n - 1], reply[2 * n] = result, detail
end
write_all()
return reply
