-- Purpose: compares entries about schedules with their records, and the records with all entries that they need.
-- Guarantees: everything is checked again in this step; correct entries are left unchanged; each repair is an event.
-- KEYS: 1 lubdub:{shard}:events, 2 …:schedules, 3 …:scheduledue, then for each schedule lubdub:{shard}:schedule:<scope>/<id>,
--   …:scheduletask:<scope>/<id>, …:pending:<scope>/<id>, …:fired:<scope>/<id>
-- ARGV: 1 number of schedules, then scope and id of each
-- Reply: for each schedule {what was repaired}
-- Cost: O(log n) for each, and for what a deleted one has left; at most 25 a call
--#include lib/clock.lua
--#include lib/scheduleevent.lua
--#include lib/schedule.lua
local KEYS_PER_SCHEDULE = 4
local reply = {}
for n = 1, tonumber(ARGV[1]) do
  local scope, id = unpack(ARGV, 2 * n, 2 * n + 1)
  local name, k = scope .. '/' .. id, 4 + KEYS_PER_SCHEDULE * (n - 1)
  local f, done = open_schedule(KEYS[k]), {}
  local function repaired(what)
    done[#done + 1] = what
    emit_schedule(KEYS[1], 'system.repaired', scope, id, f or {}, '{"what":"' .. what .. '"}')
  end
  if f then
    if redis.call('ZADD', KEYS[2], '0', name) == 1 then repaired('missing_schedule') end
    local waits = redis.call('EXISTS', KEYS[k + 2]) == 1
    if (not f.p and not f.e or waits) and redis.call('ZADD', KEYS[3], 'NX', NOW, name) == 1 then repaired('missing_look') end
  else
    if redis.call('ZREM', KEYS[2], name) == 1 then repaired('stray_schedule') end
    if redis.call('ZREM', KEYS[3], name) == 1 then repaired('stray_look') end
    if redis.call('DEL', unpack(KEYS, k + 1, k + 3)) > 0 then repaired('stray_fires') end
  end
  reply[n] = done
end
return reply
