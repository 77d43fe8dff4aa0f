-- Purpose: records that a step has upgraded the store to the next version of the stored format.
-- Guarantees: only if the store has the version with which the step began; neither number ever decreases. Repeating it changes
--   nothing.
-- KEYS: 1 lubdub:{0}:meta
-- ARGV: 1 version with which the step began, 2 version that it led to, 3 oldest version that a program must support to run on
--   the store from now on
-- Reply: the current version of the store, or -1 if the store has been lost meanwhile
-- Cost: O(1)
local shards, version, least = unpack(redis.call('HMGET', KEYS[1], 'shards', 'schema', 'least'))
if not shards then return -1 end
version = tonumber(version or 0)
if version ~= tonumber(ARGV[1]) then return version end
redis.call('HSET', KEYS[1], 'schema', ARGV[2], 'least', math.max(tonumber(least or 0), tonumber(ARGV[3])))
return tonumber(ARGV[2])
