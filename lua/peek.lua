-- Purpose: tells a sweeper when anything in a shard may next be due, and who else sweeps.
-- Guarantees: writes nothing but the sweeper's own presence; bounded by the number of timeouts in use.
-- KEYS: 1 lubdub:{shard}:clock, 2 …:timers, 3 …:due, 4 …:timeouts, 5 …:sweepers, 6 …:outbox, then one
--   …:beats:<timeoutMs> for each
--   timeout that the sweeper knows of
-- ARGV: 1 sweeper, 2 ms after which a silent sweeper is forgotten
-- Reply: {wall ms, shard time ms, first timer in shard time ms, first due in wall ms, {first beat in shard time ms of
--   each known timeout}, {sweepers}, {timeouts in use, ms}, first word in the outbox in wall ms}
-- Cost: O(timeouts)
--#include lib/clock.lua
local L = shard_time(KEYS[1])
local function head(key) return tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]) or 9007199254740991 end
redis.call('ZADD', KEYS[5], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[5], '-inf', now - ARGV[2])
local beats = {}
for i = 7, #KEYS do beats[#beats + 1] = head(KEYS[i]) end
return {now, L, head(KEYS[2]), head(KEYS[3]), beats, redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', now),
  redis.call('SMEMBERS', KEYS[4]), head(KEYS[6])}
