-- Purpose: tells a sweeper when anything in some shards may next be due, and who else sweeps them.
-- Guarantees: writes nothing but the sweeper's own presence, and that last; bounded by the number of timeouts in use.
--   Works above maxmemory, since what it writes first only frees.
-- KEYS: for each shard lubdub:{shard}:clock, …:timers, …:due, …:timeouts, …:sweepers, …:outbox and one
--   …:beats:<timeoutMs> for each timeout that the sweeper knows of. On Cluster a call is about one shard only.
-- ARGV: 1 sweeper, 2 ms after which a silent sweeper is forgotten, then for each shard how many timeouts it knows of
-- Reply: wall ms, then for each shard {shard time ms, first timer in shard time ms, first due in wall ms, first word in
--   the outbox in wall ms, {first beat in shard time ms of each known timeout}, {sweepers}, {timeouts in use, ms}}
-- Cost: O(timeouts)
--#include lib/clock.lua
local function head(key) return tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]) or 9007199254740991 end
local reply, k = {now}, 1
local forgotten = string.format('%.0f', now - ARGV[2])
for s = 3, #ARGV do
  local last, beats = k + 5 + ARGV[s], {}
  for i = k + 6, last do beats[#beats + 1] = head(KEYS[i]) end
  reply[#reply + 1] = {shard_time(KEYS[k]), head(KEYS[k + 1]), head(KEYS[k + 2]), head(KEYS[k + 5]), beats,
    redis.call('ZRANGEBYSCORE', KEYS[k + 4], '(' .. forgotten, now), redis.call('SMEMBERS', KEYS[k + 3])}
  k = last + 1
end
k = 1
for s = 3, #ARGV do
  redis.call('ZREMRANGEBYSCORE', KEYS[k + 4], '-inf', forgotten)
  redis.call('ZADD', KEYS[k + 4], now, ARGV[1])
  k = k + 6 + ARGV[s]
end
return reply
