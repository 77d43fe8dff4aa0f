-- Purpose: reserves room for a claim of a worker, or gives a reservation back.
-- Guarantees: only an ONLINE worker gets any; room that other claims of it have reserved and not given back is not
--   given twice. A reservation that nobody gives back ends by itself.
-- KEYS: 1 lubdub:{shard}:worker:<scope>/<id>, 2 …:reserved:<scope>/<id>
-- ARGV: 1 name of the reservation, 2 how many are wanted (-1: give it back), 3 life ms
-- Reply: {code, wall ms, granted, max concurrent, reserved by others, queue, machine, types, runtimes, labels as JSON,
--   reason}; {OFFLINE or DRAINING, wall ms, …}; granted does not count what the worker holds
-- Cost: O(reservations of the worker)
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/workercodes.lua
local f = redis.call('HMGET', KEYS[1], 's', 'mc', 'q', 'm', 'y', 'rn', 'l', 'r')
local status = f[1]
if not status then return {NOT_FOUND, now} end
local others = 0
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
for _, entry in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  local name, n = string.match(entry, '^(.*):(%d+)$')
  if name == ARGV[1] then redis.call('ZREM', KEYS[2], entry) else others = others + n end
end
local want = tonumber(ARGV[2])
local code = status == 'F' and OFFLINE or status == 'D' and DRAINING or OK
local max = tonumber(f[2])
local granted = 0
if code == OK and want > 0 then
  granted = math.max(0, math.min(want, max - others))
  if granted > 0 then
    redis.call('ZADD', KEYS[2], now + ARGV[3], ARGV[1] .. ':' .. granted)
    if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[2], ARGV[3]) end
  end
end
return {code, now, granted, max, others, f[3], f[4], f[5], f[6] or '', f[7] or '', f[8] or ''}
