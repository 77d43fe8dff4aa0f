-- Purpose: tells a sweeper when anything about workers may next be due in a shard.
-- Guarantees: writes nothing.
-- KEYS: 1 lubdub:{shard}:clock, 2 …:workerbeats, 3 …:workerdue, 4 …:recoveries, 5 …:sweepers
-- ARGV: none
-- Reply: {wall ms, shard time ms, first look at a worker in shard time ms, first due in wall ms, first recovery in wall
--   ms, {sweepers}}
-- Cost: O(sweepers)
--#include lib/clock.lua
local L = shard_time(KEYS[1])
local function head(key) return tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]) or 9007199254740991 end
return {now, L, head(KEYS[2]), head(KEYS[3]), head(KEYS[4]), redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', now)}
