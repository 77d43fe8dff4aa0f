-- Purpose: records the outcomes of waiting fires: their tasks were created, refused, or not wanted since another one runs.
-- Guarantees: each fire is recorded once, with one event; one that was requested again although it had its task gets no event.
--   A fire for which a task was decided on is not skipped. A schedule that has changed since it was read is examined again at
--   once.
-- KEYS: 1 lubdub:{shard}:events, 2 …:scheduledue, 3 …:schedule:<scope>/<id>, 4 …:pending:<scope>/<id>, 5 …:fired:<scope>/<id>
-- ARGV: 1 scope, 2 id, 3 version that was read, 4 next examination, wall ms, '' for never, 5 ms until the next one while fires
--   wait, 0 unless one was refused for now, 6 number of fires, then for each: the fire as it waits, its time in RFC 3339,
--   outcome c (created), o (not wanted) or r (refused), its task, the one that runs, or why it was refused
-- Reply: for each fire 1 if it was recorded, else 0
-- Cost: O(fires log n), an event each; at most 100
--#include lib/clock.lua
--#include lib/scheduleevent.lua
--#include lib/schedule.lua
local scope, id, version, next, pause, n = unpack(ARGV, 1, 6)
local name = scope .. '/' .. id
local f = open_schedule(KEYS[3])
if not f then
  redis.call('ZREM', KEYS[2], name)
  redis.call('DEL', KEYS[4], KEYS[5])
  return {}
end
local MAX_FIRED = 10
local DATA = {
  c = '{"fireAt":"%s","kind":"%s","taskId":"%s","skipped":%s}',
  o = '{"fireAt":"%s","kind":"%s","reason":"overlap","taskId":"%s"}',
  r = '{"fireAt":"%s","kind":"%s","reason":"refused","error":"%s"}',
}
local KINDS = {s = 'schedule', m = 'manual', b = 'backfill'}
local noted, repeats = {}, f.rp
for i = 7, 6 + 4 * n, 4 do
  local fire, at, outcome, detail = unpack(ARGV, i, i + 3)
  local ms, kind = string.match(fire, '^(%d+)/(%a)$')
  noted[#noted + 1] = 0
  if (outcome ~= 'o' or f.dc ~= ms) and redis.call('ZREM', KEYS[4], fire) == 1 then
    noted[#noted] = 1
    if f.dc == ms then redis.call('HDEL', KEYS[3], 'dc') end
    local again = repeats and string.find(repeats, ms .. ',', 1, true)
    if again then repeats = string.gsub(repeats, ms .. ',', '') end
    if again and outcome == 'c' then
      redis.call('HSET', KEYS[3], 'tk', detail)
    elseif outcome == 'c' then
      redis.call('HINCRBY', KEYS[3], 'nf', 1)
      redis.call('HSET', KEYS[3], 'tk', detail)
      emit_schedule(KEYS[1], 'schedule.fired', scope, id, f, string.format(DATA.c, at, KINDS[kind], detail, f.su or '0'))
      if f.su then redis.call('HDEL', KEYS[3], 'su') end
      f.su = nil
    else
      redis.call('HINCRBY', KEYS[3], 'sk', 1)
      emit_schedule(KEYS[1], 'schedule.skipped', scope, id, f, string.format(DATA[outcome], at, KINDS[kind], detail))
    end
    redis.call('LPUSH', KEYS[5], pack_fired(ms, kind, outcome, detail))
    redis.call('LTRIM', KEYS[5], 0, MAX_FIRED - 1)
  end
end
if repeats == '' then
  redis.call('HDEL', KEYS[3], 'rp')
elseif repeats ~= f.rp then
  redis.call('HSET', KEYS[3], 'rp', repeats)
end
if tonumber(pause) > 0 then
  redis.call('HSET', KEYS[3], 'bp', pause)
elseif f.bp and n ~= '0' then
  redis.call('HDEL', KEYS[3], 'bp')
end
if f.p then
  next = ''
elseif f.v ~= version then
  next = NOW
end
schedule_check(KEYS[2], KEYS[4], name, next, digits(now + pause))
return noted
