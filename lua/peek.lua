-- Purpose: tells a sweeper when anything in some shards may next be due, and who else sweeps them.
-- Guarantees: writes nothing but the sweeper's own presence; bounded by the number of timeouts in use.
-- KEYS: for each shard lubdub:{shard}:clock, …:timers, …:due, …:timeouts, …:sweepers, …:outbox and one
--   …:beats:<timeoutMs> for each timeout that the sweeper knows of. On Cluster a call is about one shard only.
-- ARGV: 1 sweeper, 2 ms after which a silent sweeper is forgotten, then for each shard how many timeouts it knows of
-- Reply: wall ms, then for each shard {shard time ms, first timer in shard time ms, first due in wall ms, first word in
--   the outbox in wall ms, {first beat in shard time ms of each known timeout}, {sweepers}, {timeouts in use, ms}}
-- Cost: O(timeouts)
--#include lib/clock.lua
local function head(key) return tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]) or 9007199254740991 end
local reply, k = {now}, 1
for s = 3, #ARGV do
  local last, beats, sweepers = k + 5 + ARGV[s], {}, KEYS[k + 4]
  redis.call('ZADD', sweepers, now, ARGV[1])
  redis.call('ZREMRANGEBYSCORE', sweepers, '-inf', now - ARGV[2])
  for i = k + 6, last do beats[#beats + 1] = head(KEYS[i]) end
  reply[#reply + 1] = {shard_time(KEYS[k]), head(KEYS[k + 1]), head(KEYS[k + 2]), head(KEYS[k + 5]), beats,
    redis.call('ZRANGEBYSCORE', sweepers, '-inf', now), redis.call('SMEMBERS', KEYS[k + 3])}
  k = last + 1
end
return reply
