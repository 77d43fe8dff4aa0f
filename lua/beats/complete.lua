-- Purpose: ends an attempt as its worker reports, and its task with it unless the retry policy allows another attempt.
-- Guarantees: exactly one transition per attempt; a repeat of the same outcome of the same attempt gets the same reply; an
--   attempt that is not current, or that Lubdub ended, changes nothing; an attempt that never reported its start is started
--   first; while a cancel is pending nothing is retried.
-- KEYS: 1–12 the shard's fixed keys (lib/shard.lua), 13 lubdub:{shard}:task:<scope>/<id>, 14 …:doc:<scope>/<id>,
--   15 …:history:<scope>/<id>, 16 …:run:<scope>/<run>, 17 …:beats:<timeoutMs>, 18 …:fences
-- ARGV: 1 scope, 2 id, 3 attempt, 4 fence, 5 heartbeat timeout ms, 6 interval ms, 7 issued wall ms, 8 run or '' (its own), 9
--   worker that claimed it or '', 10 deadline wall ms or 0, 11 worker or '', 12 outcome (SUCCEEDED, FAILED, CANCELLED, SNOOZED),
--   13 how long to wait before the next attempt, ms, or 'policy' as the retry policy has it, or '': none follows, 14 retention
--   ms, 15 error JSON as the history keeps it or '', 16 the complete error or '', 17 wall ms of it by the worker's clock or '',
--   18 metrics as the history keeps them or '', 19 the error's text as failures are grouped by it, then the document's fields
--   as name and value
-- Reply: {code, wall ms, detail (code's: current attempt, reason or state), will retry 1 or 0}
-- Cost: O(log n), O(log history) for a repeat; at most three events; a failure leaves an entry, the newest 1,000 of its scope
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/shard.lua
--#include lib/task.lua
--#include lib/ending.lua
--#include lib/attempt.lua
local FAILURES = 1000 -- reported failures of a scope that a shard lists

-- Lists the failure, apart from verdicts so that many failures do not displace these, and forgets the oldest.
local function list_failure(task, text)
  local first = '(}!' .. task.scope .. '/'
  redis.call('ZADD', IX, '0', '}!' .. string.sub(verdict_entry(task, 'WORKER_REPORTED'), 2) .. '/' .. text)
  local surplus = redis.call('ZLEXCOUNT', IX, first, first .. '~') - FAILURES
  if surplus <= 0 then return end
  redis.call('ZREM', IX, unpack(redis.call('ZRANGEBYLEX', IX, first, first .. '~', 'LIMIT', 0, math.min(surplus, 10))))
end

local task = open_task(TASKS, ARGV[1], ARGV[2])
local L = shard_time(CLOCK)
local attempt, outcome, retention, err = tonumber(ARGV[3]), ARGV[12], tonumber(ARGV[14]), ARGV[16]
local code, detail = admit(task, L, {attempt = attempt, fence = ARGV[4], timeout = ARGV[5], interval = ARGV[6],
  issued = tonumber(ARGV[7]), run = ARGV[8], worker = ARGV[9],
  deadline = tonumber(ARGV[10])})
if code ~= OK then
  local entry = entry_of(task.history, attempt, task.f.a, task.f.s)
  local fence, _, _, was, ended_for, retried = unpack_ended(entry)
  local reported = (was ~= 'FAILED' or ended_for == 'WORKER_REPORTED') and ended_for ~= 'TERMINATED'
  if fence == ARGV[4] and was == outcome and reported then return {REPEATED, now, '', tonumber(retried) or 0} end
  return {code, now, detail, 0}
end
local snoozed = outcome == 'SNOOZED'
if snoozed and not task.f.q then return {REFUSED, now, '', 0} end
if task.f.s == 'D' then begin(task, L, ARGV[11]) end
local score, report = leave(task)
local reason = outcome == 'FAILED' and 'WORKER_REPORTED' or snoozed and outcome or nil
local after, exhausted
if snoozed then
  if task.f.cr then outcome, reason = 'CANCELLED', nil else after = tonumber(ARGV[13]) or 0 end
elseif reason and ARGV[13] ~= '' then
  after, exhausted = retry_after(task, false)
  if after then after = tonumber(ARGV[13]) or after end
end
append_history(task, report, {outcome = ARGV[12], reason = reason, retry = retry_mark(after, exhausted),
  last_beat = last_heartbeat(task, score, L), err = ARGV[15], completed = ARGV[17], metrics = ARGV[18]})
if outcome == 'FAILED' then list_failure(task, ARGV[19]) end
local before, bytes = result_bytes(task), #err
if err ~= '' then redis.call('HSET', task.doc, 'error', err) end
for i = 21, after and 0 or #ARGV, 2 do bytes = bytes + #ARGV[i] end
if before > 0 or bytes > LIGHT / 4 then add_bytes(task, bytes - before) end
if after then
  requeue(task, reason, after)
  return {OK, now, '', 1}
end
if #ARGV > 19 then redis.call('HSET', task.doc, unpack(ARGV, 20)) end
finish(task, string.sub(outcome, 1, 1), reason, retention)
emit(task, 'task.' .. string.lower(outcome),
  reason and '{"reason":"' .. reason .. '"' .. (exhausted and ',"retriesExhausted":true' or '') .. '}')
return {OK, now, '', 0}
