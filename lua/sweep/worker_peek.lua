-- Purpose: returns when anything about workers may next be due in some shards.
-- Guarantees: writes nothing.
-- KEYS: for each shard lubdub:{shard}:clock, …:workerbeats, …:workerdue, …:recoveries, …:sweepers. On Cluster a call covers
--   one shard only.
-- ARGV: none
-- Reply: wall ms, then for each shard {shard time ms, first check of a worker in shard time ms, first due in wall ms,
--   first recovery in wall ms, {sweepers}}
-- Cost: O(sweepers)
--#include lib/clock.lua
local function head(key) return tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]) or 9007199254740991 end
local reply = {now}
for k = 1, #KEYS, 5 do
  reply[#reply + 1] = {shard_time(KEYS[k]), head(KEYS[k + 1]), head(KEYS[k + 2]), head(KEYS[k + 3]),
    redis.call('ZRANGEBYSCORE', KEYS[k + 4], '-inf', now)}
end
return reply
