-- Purpose: tells a sweeper when anything in some shards may next be due, and who else sweeps them.
-- Guarantees: writes nothing but the sweeper's own presence, and that last. Works above maxmemory, since what it writes
--   first only frees.
-- KEYS: for each shard lubdub:{shard}:clock, …:timers, …:due, …:timeouts, …:sweepers, …:outbox. On Cluster a call is
--   about one shard only.
-- ARGV: 1 sweeper, 2 ms after which a silent sweeper is forgotten
-- Reply: wall ms, then for each shard {shard time ms, first timer in shard time ms, first due in wall ms, first notice in
--   the outbox in wall ms, {sweepers}, {timeouts in use, ms}}
-- Cost: O(timeouts in use), at most 437 for each shard
--#include lib/clock.lua
local function head(key) return tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]) or 9007199254740991 end
local KEYS_PER_SHARD = 6
local reply = {now}
local forgotten = string.format('%.0f', now - ARGV[2])
for k = 1, #KEYS, KEYS_PER_SHARD do
  reply[#reply + 1] = {shard_time(KEYS[k]), head(KEYS[k + 1]), head(KEYS[k + 2]), head(KEYS[k + 5]),
    redis.call('ZRANGEBYSCORE', KEYS[k + 4], '(' .. forgotten, now), redis.call('SMEMBERS', KEYS[k + 3])}
end
for k = 5, #KEYS, KEYS_PER_SHARD do
  redis.call('ZREMRANGEBYSCORE', KEYS[k], '-inf', forgotten)
  redis.call('ZADD', KEYS[k], now, ARGV[1])
end
return reply
