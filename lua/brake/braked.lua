-- Purpose: lists the entries of the mass-expiry brake in a shard that are in force.
-- Guarantees: writes nothing; bounded by the limit.
-- KEYS: 1 lubdub:{shard}:clock, 2 …:braked
-- ARGV: 1 number of entries to skip, 2 limit
-- Reply: the entries (lib/brake.lua), latest first, so that entries that expire meanwhile are the last ones
-- Cost: O(log n + limit); at most 500 a call
--#include lib/clock.lua
local NEVER = '9007199254740991' -- score of the sentinel, which precedes all others
local L = string.format('%.0f', shard_time(KEYS[1]))
local before = redis.call('ZCOUNT', KEYS[2], NEVER, '+inf')
local stand = redis.call('ZCOUNT', KEYS[2], '(' .. L, '(' .. NEVER)
local from, to = tonumber(ARGV[1]), math.min(ARGV[1] + ARGV[2], stand)
if from >= to then return {} end
return redis.call('ZRANGE', KEYS[2], before + from, before + to - 1, 'REV') -- by rank: skipped entries cost nothing
