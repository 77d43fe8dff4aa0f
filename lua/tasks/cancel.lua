-- Purpose: asks a running attempt to cancel, or cancels at once a task that no worker has begun.
-- Guarantees: repeating it changes nothing and gets the same answer, also once the task is CANCELLED by it; the first
--   reason stands; a task that finished otherwise is left alone. The grace period does not start here but when a reply
--   has carried the signal (deliver.lua).
-- KEYS: 1–12 the shard's fixed keys (lib/shard.lua), 13 lubdub:{shard}:task:<scope>/<id>, 14 …:doc:<scope>/<id>,
--   15 …:history:<scope>/<id>, 16 …:run:<scope>/<run>, 17 …:beats:<timeoutMs>
-- ARGV: 1 scope, 2 id, 3 reason as JSON string or '', 4 default cancel grace ms, 5 retention ms
-- Reply: {OK} or {TERMINAL, state} or {NOT_FOUND}
-- Cost: O(log n), at most two events
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/shard.lua
--#include lib/task.lua
--#include lib/ending.lua
--#include lib/cancel.lua
local task = open_task(TASKS, ARGV[1], ARGV[2])
if not task.f then return {NOT_FOUND} end
local state, reason = task.f.s, ARGV[3]
if task.f.cr and state ~= 'S' and state ~= 'F' then return {OK} end -- it is on its way, or has had its effect
if state ~= 'Q' and state ~= 'D' and state ~= 'R' then return {TERMINAL, state} end
task.f.cr = now
redis.call('HSET', task.key, 'cr', now)
if reason ~= '' then redis.call('HSET', task.doc, 'cancelReason', reason) end
emit(task, 'task.cancel_requested', reason ~= '' and '{"reason":' .. reason .. '}')
if state == 'R' then
  redis.call('HSET', CANCELS, SENTINEL, '', member_of(task), pack_cancel(task.f.g or ARGV[4], '', reason))
  leave_notice(task, 'c', reason)
  return {OK}
end
if state == 'D' then leave_notice(task, 'l', 'task_already_terminal') end
local _, report = leave(task)
if state == 'D' then remember(task, report, {outcome = 'CANCELLED'}) end
if state == 'Q' then redis.call('HDEL', task.doc, 'error') end -- of the attempt that failed before
finish(task, 'C', nil, tonumber(ARGV[5]))
emit(task, 'task.cancelled')
return {OK}
