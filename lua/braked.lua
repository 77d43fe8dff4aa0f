-- Purpose: lists what the mass expiry brake remembers of a shard and is not over.
-- Guarantees: writes nothing; bounded by the limit.
-- KEYS: 1 lubdub:{shard}:clock, 2 …:braked
-- ARGV: 1 entries to leave out, 2 limit
-- Reply: the entries (lib/brake.lua), soonest first
-- Cost: O(log n + entries left out + limit)
--#include lib/clock.lua
local L = string.format('%.0f', shard_time(KEYS[1]))
return redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. L, '(9007199254740991', 'LIMIT', ARGV[1], ARGV[2])
