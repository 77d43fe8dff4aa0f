-- Purpose: counts the entries of the last day in sorted sets whose scores are wall times.
-- Guarantees: writes nothing.
-- KEYS: any sorted sets of one shard
-- ARGV: none
-- Reply: a count for each key
-- Cost: O(keys × log n)
--#include lib/clock.lua
local reply = {}
for i, key in ipairs(KEYS) do reply[i] = redis.call('ZCOUNT', key, now - 86400000, '+inf') end
return reply
