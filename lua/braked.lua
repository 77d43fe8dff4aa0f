-- Purpose: lists what the mass expiry brake remembers of a shard and is not over.
-- Guarantees: writes nothing; bounded by the limit.
-- KEYS: 1 lubdub:{shard}:clock, 2 …:braked
-- ARGV: 1 entries to leave out, 2 limit
-- Reply: the entries (lib/brake.lua), latest first: those that are over meanwhile are the last ones
-- Cost: O(log n + entries left out + limit)
--#include lib/clock.lua
local L = string.format('%.0f', shard_time(KEYS[1]))
return redis.call('ZRANGE', KEYS[2], '(9007199254740991', '(' .. L, 'BYSCORE', 'REV', 'LIMIT', ARGV[1], ARGV[2])
