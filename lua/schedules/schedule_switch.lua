-- Purpose: pauses, resumes or deletes a schedule.
-- Guarantees: repeating it changes nothing. Earlier fires are not undone, but a deleted schedule creates no more tasks.
-- KEYS: those of schedule_save.lua
-- ARGV: 1 scope, 2 id, 3 pause, resume or delete
-- Reply: {OK} or {NOT_FOUND}
-- Cost: O(log n + waiting fires)
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/scheduleevent.lua
--#include lib/schedule.lua
local scope, id, act = unpack(ARGV, 1, 3)
local name = scope .. '/' .. id
local f = open_schedule(KEYS[4])
if not f then return {NOT_FOUND} end
local function emit_change(type) emit_schedule(KEYS[1], type, scope, id, f) end
if act == 'delete' then
  redis.call('ZREM', KEYS[2], name)
  redis.call('ZREM', KEYS[3], name)
  redis.call('DEL', unpack(KEYS, 4, 7))
  emit_change('schedule.deleted')
elseif act == 'pause' and not f.p then
  redis.call('HSET', KEYS[4], 'p', NOW, 'v', digits(f.v + 1))
  schedule_check(KEYS[3], KEYS[6], name, '', NOW)
  emit_change('schedule.paused')
elseif act == 'resume' and f.p then
  redis.call('HDEL', KEYS[4], 'p')
  redis.call('HSET', KEYS[4], 'rs', NOW, 'v', digits(f.v + 1))
  redis.call('ZADD', KEYS[3], NOW, name)
  emit_change('schedule.resumed')
end
return {OK}
