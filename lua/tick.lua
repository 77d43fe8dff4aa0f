-- Purpose: an empty beat: keeps the time of one shard running while nobody beats it, and makes its fixed keys exist.
-- Guarantees: shard time moves by at most 250 ms a call, before anything else is written. Repeating it is harmless.
-- KEYS: 1 lubdub:{shard}:clock, 2 …:outages, 3 …:progress, 4 …:cancels, 5 …:replicas, 6 …:timeouts, 7 …:timers,
--   8 …:due, 9 …:ix, 10 …:events, 11 …:sweepers, 12 …:ready, 13 …:held, 14 …:outbox, 15 …:fences, 16 …:paused,
--   17 …:workers, 18 …:workerbeats, 19 …:workerdue, 20 …:recoveries
-- ARGV: 1 replica that keeps the shard's time, 2 window ms after which a silent replica is forgotten
-- Reply: {wall ms, shard time ms, gap ms since the clock was last written, {replicas that keep the shard's time}}
-- Cost: O(number of replicas)
--#include lib/clock.lua
--#include lib/step.lua
local L, gap = step(KEYS[1], KEYS[2])
redis.call('ZADD', KEYS[5], now, ARGV[1])
if redis.call('EXISTS', unpack(KEYS)) < #KEYS then -- a new shard, or one whose store was lost
  -- The value is too long for a listpack: even few reports live in a hash table, so that writing one scans nothing.
  redis.call('HSET', KEYS[3], '!', string.rep('.', 65))
  redis.call('HSET', KEYS[4], '!', '')
  for _, i in ipairs({7, 8, 11, 14, 15, 18, 19, 20}) do redis.call('ZADD', KEYS[i], '9007199254740991', '!') end
  for _, i in ipairs({6, 16}) do redis.call('SADD', KEYS[i], '!') end
  for _, i in ipairs({9, 12, 13, 17}) do redis.call('ZADD', KEYS[i], 0, '!') end
  if redis.call('EXISTS', KEYS[2]) == 0 then redis.call('RPUSH', KEYS[2], '!') end
  if redis.call('EXISTS', KEYS[10]) == 0 then
    redis.call('XADD', KEYS[10], '*', 'type', 'system.shard_started', 'time', now)
  end
end
redis.call('ZREMRANGEBYSCORE', KEYS[5], '-inf', now - ARGV[2])
return {now, L, gap, redis.call('ZRANGE', KEYS[5], 0, -1)}
