-- Purpose: creates the next attempt of a task: dispatches a pushed task, or returns a queue task to its queue at once.
-- Guarantees: the old attempt is fenced in the same step; a repeat of the same request changes nothing and is reported as
--   such; a succeeded or cancelled task is left unchanged. The view of the task is as of this step, so no client gets the
--   envelope of an attempt that another one has requested since.
-- KEYS: 1–12 the shard's fixed keys (lib/shard.lua), 13 lubdub:{shard}:task:<scope>/<id>, 14 …:doc:<scope>/<id>,
--   15 …:history:<scope>/<id>, 16 …:run:<scope>/<run>, 17 …:beats:<timeoutMs>
-- ARGV: 1 scope, 2 id, 3 from attempt, 4 fence of the new attempt, 5 token life s, 6 start timeout ms
-- Reply: {OK or REPEATED, wall ms, the view of the task (lib/view.lua)} or {MISMATCH, wall ms, current attempt} or
--   {TERMINAL, wall ms, state} or {REFUSED, wall ms, 'deadline'|'pending'} or {NOT_FOUND}
-- Cost: O(log n), at most one event
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/shard.lua
--#include lib/task.lua
--#include lib/ending.lua
--#include lib/dispatch.lua
--#include lib/view.lua
local task = open_task(TASKS, ARGV[1], ARGV[2])
if not task.f then return {NOT_FOUND} end
local f, from = task.f, tonumber(ARGV[3])
local L = shard_time(CLOCK)

if f.a == from + 1 then return {REPEATED, now, view(task, 'all')} end
if f.a ~= from then return {MISMATCH, now, f.a} end
if f.s == 'S' or f.s == 'C' then return {TERMINAL, now, f.s} end
if f.x and tonumber(f.x) <= now then return {REFUSED, now, 'deadline'} end
if f.cr and f.s ~= 'F' then return {REFUSED, now, 'pending'} end
if not f.q then
  dispatch(task, L, {fence = ARGV[4], life = ARGV[5], start = ARGV[6]})
  return {OK, now, view(task, 'all')}
end
if f.s == 'Q' then
  if not f.n then return {REPEATED, now, view(task, 'all')} end
  redis.call('ZREM', DUE, 'b:' .. task.name)
  end_wait(task)
  return {OK, now, view(task, 'all')}
end
supersede(task, L)
redis.call('HDEL', task.key, 'e', 'cr')
forget_result(task)
redis.call('ZREM', DUE, 'x:' .. task.name)
if f.x then redis.call('ZADD', DUE, f.x, 'd:' .. task.name) end
requeue(task, f.s == 'F' and f.r or 'SUPERSEDED', 0)
return {OK, now, view(task, 'all')}
