-- Purpose: records that a worker was selected and, for a placement, reserves its place until the task is in the queue.
-- Guarantees: only an ONLINE worker that is not cordoned is recorded; a reservation that is not returned expires.
-- KEYS: 1 lubdub:{shard}:worker:<scope>/<id>, 2 …:reserved:<scope>/<id>
-- ARGV: 1 name of the reservation or '', 2 its life ms
-- Reply: {code, reserved by others, when it was last selected, wall ms, or ''}
-- Cost: O(reservations of the worker)
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/reservation.lua
local f = redis.call('HMGET', KEYS[1], 's', 'co')
if not f[1] then return {NOT_FOUND, 0} end
if f[1] ~= 'N' or f[2] then return {REFUSED, 0} end
local others = 0
for _, entry in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. string.format('%.0f', now), '+inf')) do
  local _, places = unpack_reservation(entry)
  others = others + places
end
-- Two selections within a millisecond must differ for round robin.
local last = tonumber(redis.call('HGET', KEYS[1], 'ls')) or 0
redis.call('HSET', KEYS[1], 'ls', string.format('%.0f', math.max(now, last + 1)))
if ARGV[1] ~= '' then
  redis.call('ZADD', KEYS[2], now + ARGV[2], pack_reservation(ARGV[1], 1))
end
return {OK, others, last > 0 and string.format('%.0f', last) or ''}
