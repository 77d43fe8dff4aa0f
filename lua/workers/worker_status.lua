-- Purpose: drains a worker, undoes a drain or a hold, or ends the worker at once and may hold it offline.
-- Guarantees: repeating it changes nothing; an OFFLINE worker stays so, and is held unless another has its identity; the hold
--   is its lineage's, so resuming one of several held workers lifts it; a drain that was requested separately lasts longer
--   than its machine's; the machine's status follows, and the recovery of an ended worker is entered, in the same step.
-- KEYS: 1–7 the shard's fixed keys of workers (lib/worker.lua), 8–17 the worker's, as worker_register.lua has them,
--   18 lubdub:{shard}:hold:<scope>/<lineage>
-- ARGV: 1 scope, 2 id, 3 drain, resume or retire, 4 code of the end (retire), 5 drain deadline in ms from now or '', 6 1 if
--   the worker requested it itself, 7 shards, 8 retention ms, 9 1 if its tasks count as lost, 10 reason from the request, or
--   '', 11 the same as JSON, null for none, 12 1 if this is part of its machine's drain, or of the machine's resume, which
--   resumes only those that it drained, 13 for how many ms a retired one must have been silent, in shard time, or '', 14 1 if
--   a retired one is held offline
-- Reply: {OK, wall ms} or {REPEATED, wall ms} or {OFFLINE, wall ms, reason} or {NOT_FOUND, wall ms} or {REFUSED, wall ms}: it
--   has sent a heartbeat meanwhile
-- Cost: O(log n + shards), at most three events
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/workercodes.lua
--#include lib/worker.lua
local w = open_worker(8, ARGV[1], ARGV[2])
local f, action = w.f, ARGV[3]
if not f then return {NOT_FOUND, now} end
if f.s == 'F' then
  local holder = f.id and redis.call('GET', w.identity)
  if action == 'retire' and ARGV[14] == '1' and not (f.ho and redis.call('EXISTS', KEYS[18]) == 1)
    and (not holder or holder == w.id) then
    hold_offline(w, KEYS[18], ARGV[10], ARGV[11])
  elseif action == 'resume' and f.ho then
    redis.call('HDEL', w.key, 'ho')
    redis.call('ZADD', WORKERDUE, string.format('%.0f', now + ARGV[8]), 'x:' .. w.name)
    if redis.call('DEL', KEYS[18]) == 0 then return {REPEATED, now} end -- by another worker of its lineage
    emit(w, 'worker.resumed', '{"reason":' .. ARGV[11] .. ',"heldOffline":true}')
    return {OK, now}
  end
  return {OFFLINE, now, f.r or ''}
end
if action == 'retire' then
  if ARGV[13] ~= '' and f.bl and shard_time(CLOCK) - f.bl < tonumber(ARGV[13]) then return {REFUSED, now} end
  if ARGV[10] ~= '' then redis.call('HSET', w.key, 'gr', ARGV[10]) end
  retire(w, {reason = ARGV[4], loss = ARGV[9] == '1', shards = tonumber(ARGV[7]), retention = tonumber(ARGV[8]),
    data = ',"givenReason":' .. ARGV[11]})
  if ARGV[14] == '1' then hold_offline(w, KEYS[18], ARGV[10], ARGV[11]) end
  return {OK, now}
end
local with_machine = ARGV[12] == '1'
if action == 'resume' then
  if f.s == 'N' or with_machine and not f.md then return {REPEATED, now} end
  resume(w, '{"reason":' .. ARGV[11] .. '}')
  return {OK, now}
end
if with_machine and f.md == 'w' then return {REPEATED, now} end -- it waits already
if ARGV[5] ~= '' then redis.call('HSET', w.key, 'dd', string.format('%.0f', now + ARGV[5])) end
if ARGV[6] == '1' then redis.call('HSET', w.key, 'dt', 1) end
local deadline = tonumber(ARGV[5] ~= '' and now + ARGV[5] or f.dd) or NEVER
redis.call('ZADD', WORKERDUE, math.min(deadline, (f.s == 'D' and f.ds or now) + DRAINING_MS), 'g:' .. w.name)
if not with_machine then redis.call('HDEL', w.key, 'md') end
if f.s == 'D' then return {REPEATED, now} end
redis.call('HSET', w.key, 'ds', now)
if with_machine then redis.call('HSET', w.key, 'md', 1) end
if ARGV[10] ~= '' then redis.call('HSET', w.key, 'dr', ARGV[10]) end
set_status(w, 'D')
stop_claims(w)
emit(w, 'worker.draining', '{"deadlineMs":' .. (ARGV[5] ~= '' and string.format('%.0f', now + ARGV[5]) or 'null')
  .. ',"reason":' .. ARGV[11] .. '}')
update_machine(w)
return {OK, now}
