-- Purpose: requests the cancellation of a running attempt, or cancels at once a task that no worker has started, or any task
--   that must end now.
-- Guarantees: repeating it changes nothing and gets the same reply, even once it has made the task CANCELLED; the first reason
--   counts, and the last grace that was given; a task that finished otherwise is left unchanged. The grace period starts when
--   a response has delivered the cancel (deliver.lua), not here.
-- KEYS: 1–12 the shard's fixed keys (lib/shard.lua), 13 lubdub:{shard}:task:<scope>/<id>, 14 …:doc:<scope>/<id>,
--   15 …:history:<scope>/<id>, 16 …:run:<scope>/<run>, 17 …:beats:<timeoutMs>
-- ARGV: 1 scope, 2 id, 3 reason as JSON string or '', 4 default cancel grace ms, 5 retention ms, 6 grace of this cancel ms, 0
--   to end the task now, or '': the task's own
-- Reply: {OK} or {TERMINAL, state} or {NOT_FOUND}
-- Cost: O(log n), at most two events
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/shard.lua
--#include lib/task.lua
--#include lib/ending.lua
--#include lib/cancel.lua
local task, reason, grace, retention = open_task(TASKS, ARGV[1], ARGV[2]), ARGV[3], ARGV[6], tonumber(ARGV[5])
if not task.f then return {NOT_FOUND} end
local state = task.f.s

-- Ends the task whether or not its worker knows, and notifies the worker as for any attempt that Lubdub has ended.
local function terminate()
  if state ~= 'Q' then leave_notice(task, 'l', 'task_expired') end
  local score, report = leave(task)
  if state ~= 'Q' then
    append_history(task, report, {outcome = 'CANCELLED', reason = 'TERMINATED',
      last_beat = last_heartbeat(task, score, shard_time(CLOCK))})
  end
  if state == 'Q' then redis.call('HDEL', task.doc, 'error') end -- of the attempt that failed before
  finish(task, 'C', 'TERMINATED', retention)
  emit(task, 'task.cancelled', '{"reason":"TERMINATED"}')
end

-- Replaces the grace of an earlier request; if that was delivered, the new grace starts with the delivery.
local function set_grace()
  local member = member_of(task)
  local was, delivered, why = unpack_cancel(redis.call('HGET', CANCELS, member))
  if not was then return end
  redis.call('HSET', CANCELS, member, pack_cancel(grace, delivered, why))
  if delivered ~= '' then redis.call('ZADD', TIMERS, delivered + grace, 'c:' .. member) end
end

if task.f.cr and state ~= 'S' and state ~= 'F' then -- it is in progress, or has taken effect
  if state ~= 'C' and grace == '0' then
    terminate()
  elseif state == 'R' and grace ~= '' then
    set_grace()
  end
  return {OK}
end
if state ~= 'Q' and state ~= 'D' and state ~= 'R' then return {TERMINAL, state} end
task.f.cr = now
redis.call('HSET', task.key, 'cr', now)
if reason ~= '' then redis.call('HSET', task.doc, 'cancelReason', reason) end
emit(task, 'task.cancel_requested', reason ~= '' and '{"reason":' .. reason .. '}')
if grace == '0' then
  terminate()
  return {OK}
end
if state == 'R' then
  redis.call('HSET', CANCELS, SENTINEL, '', member_of(task),
    pack_cancel(grace ~= '' and grace or task.f.g or ARGV[4], '', reason))
  leave_notice(task, 'c', reason)
  return {OK}
end
if state == 'D' then leave_notice(task, 'l', 'task_already_terminal') end
local _, report = leave(task)
if state == 'D' then append_history(task, report, {outcome = 'CANCELLED'}) end
if state == 'Q' then redis.call('HDEL', task.doc, 'error') end
finish(task, 'C', nil, retention)
emit(task, 'task.cancelled')
return {OK}
