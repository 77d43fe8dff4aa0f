-- Purpose: stores a sign of life of one attempt: its `started`, a beat that beat.lua did not find live, or one with details.
-- Guarantees: only the current attempt is accepted; a dispatched one becomes RUNNING; a running one gets another heartbeat;
--   one that the store lost is adopted from its token, unless its task has ended for good, or its worker has ended: then it is
--   lost like the others that this worker held; nothing is written for any other.
-- KEYS: 1–12 the shard's fixed keys (lib/shard.lua), 13 lubdub:{shard}:task:<scope>/<id>, 14 …:doc:<scope>/<id>,
--   15 …:history:<scope>/<id>, 16 …:run:<scope>/<run>, 17 …:beats:<timeoutMs>, 18 …:fences
-- ARGV: 1 scope, 2 id, 3 attempt, 4 fence, 5 heartbeat timeout ms, 6 interval ms, 7 issued wall ms, 8 run or '' (its own), 9
--   worker that claimed it or '', 10 deadline wall ms or 0, 11 worker or '', 12 packed report or '', 13 retention ms, 14 who
--   declares it lost, 15 details as JSON or ''
-- Reply: {code, wall ms, detail (code's: current attempt, reason or state), cancel or ''}
-- Cost: O(log n), at most two events
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/shard.lua
--#include lib/task.lua
--#include lib/ending.lua
--#include lib/attempt.lua

-- Keeps the details in the task's document, for its next attempts. Short ones do not count as bytes.
local function save_details(task, details)
  local function counted(bytes) return bytes > LIGHT / 4 and bytes or 0 end
  local more = counted(#details) - counted(redis.call('HSTRLEN', task.doc, 'details'))
  redis.call('HSET', task.doc, 'details', details)
  if more ~= 0 then add_bytes(task, more) end
end

local task = open_task(TASKS, ARGV[1], ARGV[2])
local L = shard_time(CLOCK)
local token = {attempt = tonumber(ARGV[3]), fence = ARGV[4], timeout = ARGV[5], interval = ARGV[6],
  issued = tonumber(ARGV[7]), run = ARGV[8], worker = ARGV[9], deadline = tonumber(ARGV[10])}
local code, detail = admit(task, L, token, tonumber(ARGV[13]), ARGV[14])
if code ~= OK then return {code, now, detail, ''} end
local member = member_of(task)
if task.f.s == 'D' then
  begin(task, L, ARGV[11])
else
  ensure_beats(task.beats, task.f.t)
  redis.call('ZADD', task.beats, 'GT', L, member)
end
if ARGV[12] ~= '' then
  redis.call('HSET', PROGRESS, member, merge_report(redis.call('HGET', PROGRESS, member), ARGV[12]))
end
if ARGV[15] ~= '' then save_details(task, ARGV[15]) end
return {OK, now, '', task.f.cr and redis.call('HGET', CANCELS, member) or ''}
