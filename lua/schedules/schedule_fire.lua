-- Purpose: records requested fires: one now, or those of a past time.
-- Guarantees: a fire that waits for its task, or is among the last ten handled ones, is not recorded again. The last fire does
--   not change. The number of waiting fires is limited.
-- KEYS: 1 lubdub:{shard}:scheduledue, 2 …:schedule:<scope>/<id>, 3 …:pending:<scope>/<id>, 4 …:fired:<scope>/<id>
-- ARGV: 1 name, 2 kind: m (one now; none is given) or b, 3 limit of waiting fires, then the fires, wall ms in 13 digits,
--   followed by an r if it has its task
-- Reply: {OK, wall ms of the fire now}, {NOT_FOUND}, or {REFUSED} if too many wait
-- Cost: O(fires log n); at most 250
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/schedule.lua
local name, kind, limit = unpack(ARGV, 1, 3)
local f = open_schedule(KEYS[2])
if not f then return {NOT_FOUND} end
local at = math.floor(now / 1000) * 1000
local fires = kind == 'm' and {string.format('%013.0f', at)} or {unpack(ARGV, 4)}
local known = fire_lookup(KEYS[3], KEYS[4])
local new, repeats = {}, ''
for _, given in ipairs(fires) do
  local fire, again = string.match(given, '^(%d+)(r?)$')
  if not known(fire) then
    new[#new + 1] = fire .. '/' .. kind
    if again ~= '' then repeats = repeats .. fire .. ',' end
  end
end
if #new > 0 and redis.call('ZCARD', KEYS[3]) + #new > tonumber(limit) then return {REFUSED} end
for _, fire in ipairs(new) do redis.call('ZADD', KEYS[3], '0', fire) end
if #new > 0 then redis.call('ZADD', KEYS[1], NOW, name) end
if repeats ~= '' then redis.call('HSET', KEYS[2], 'rp', (f.rp or '') .. repeats) end
return {OK, at}
