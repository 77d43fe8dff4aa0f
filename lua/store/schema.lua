-- Purpose: writes down that a step has brought the store to the next version of the stored format.
-- Guarantees: only where the store is in the version that the step began with; neither number ever goes down. Repeating
--   it changes nothing.
-- KEYS: 1 lubdub:{0}:meta
-- ARGV: 1 version that the step began with, 2 version that it led to, 3 oldest version that a program must know to run
--   on the store from now on
-- Reply: the version that the store is in now, or -1 when the store has been lost meanwhile
-- Cost: O(1)
local shards, version, least = unpack(redis.call('HMGET', KEYS[1], 'shards', 'schema', 'least'))
if not shards then return -1 end
version = tonumber(version or 0)
if version ~= tonumber(ARGV[1]) then return version end
redis.call('HSET', KEYS[1], 'schema', ARGV[2], 'least', math.max(tonumber(least or 0), tonumber(ARGV[3])))
return tonumber(ARGV[2])
