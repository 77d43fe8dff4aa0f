-- Purpose: creates a schedule, or changes the definition of one.
-- Guarantees: a repeated creation (same nonce) is distinguished from another schedule with that id; a change applies only to
--   the version that it was made from, and continues from the last fire.
-- KEYS: 1 lubdub:{shard}:events, 2 …:schedules, 3 …:scheduledue, 4 …:schedule:<scope>/<id>, 5 …:scheduletask:<scope>/<id>,
--   6 …:pending:<scope>/<id>, 7 …:fired:<scope>/<id>
-- ARGV: 1 scope, 2 id, 3 nonce of the creation, or '' for a change, 4 version that is changed, 5 cron expression, 6 overlap: 1
--   to skip, else '', 7 maximum of fires to catch up, 8 queue, 9 type, 10 task as JSON without 11 payload and 12 resources
-- Reply: {OK or REPEATED, wall ms}, {EXISTS}, {NOT_FOUND} or {MISMATCH}
-- Cost: O(log n + bytes)
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/scheduleevent.lua
--#include lib/schedule.lua
local scope, id, nonce, version = unpack(ARGV, 1, 4)
local name = scope .. '/' .. id
local f = open_schedule(KEYS[4])
if nonce ~= '' and f then return {f.nn == nonce and REPEATED or EXISTS, tonumber(f.cr)} end
if nonce == '' and not f then return {NOT_FOUND} end
if nonce == '' and f.v ~= version then return {MISMATCH} end
if f then
  redis.call('HSET', KEYS[4], 'v', digits(version + 1), 'up', NOW)
  redis.call('HDEL', KEYS[4], 'e')
else
  f = {}
  redis.call('DEL', KEYS[6], KEYS[7]) -- of one that the store has lost
  redis.call('HSET', KEYS[4], 'nn', nonce, 'v', '1', 'cr', NOW, 'up', NOW, 'rs', NOW, 'l', NOW, 'ns', '1')
end
local bytes = #ARGV[10] + #ARGV[11] + #ARGV[12]
redis.call('HSET', KEYS[4], 'c', ARGV[5], 'o', ARGV[6], 'm', ARGV[7], 'q', ARGV[8], 'y', ARGV[9], 'sz', digits(bytes))
redis.call('HSET', KEYS[5], 'task', ARGV[10], 'payload', ARGV[11], 'resources', ARGV[12])
redis.call('ZADD', KEYS[2], '0', name)
schedule_check(KEYS[3], KEYS[6], name, f.p and '' or NOW, NOW)
emit_schedule(KEYS[1], nonce ~= '' and 'schedule.created' or 'schedule.changed', scope, id, {q = ARGV[8], y = ARGV[9]})
return {OK, now}
