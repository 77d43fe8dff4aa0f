-- Purpose: an empty beat: keeps the time of some shards running while nobody beats them, tells of their outages that
--   are over, and makes their fixed keys exist.
-- Guarantees: shard time moves by at most 250 ms a call, before anything else of the shard is written. Repeating it is
--   harmless.
-- KEYS: for each shard twenty-one: 1 lubdub:{shard}:clock, 2 …:outages, 3 …:progress, 4 …:cancels, 5 …:replicas,
--   6 …:timeouts, 7 …:timers, 8 …:due, 9 …:ix, 10 …:events, 11 …:sweepers, 12 …:ready, 13 …:held, 14 …:outbox,
--   15 …:fences, 16 …:pauses, 17 …:workers, 18 …:workerbeats, 19 …:workerdue, 20 …:recoveries, 21 …:braked.
--   On Cluster a call is about one shard only. With shard 0, last of all …:meta
-- ARGV: 1 replica that keeps the shards' time, 2 window ms after which a silent replica is forgotten, 3 shards of the
--   deployment
-- Reply: wall ms, then for each shard {shard time ms, gap ms since the clock was last written, {replicas that keep the
--   shard's time}}
-- Cost: O(number of replicas) for each shard, one event for each outage that is to be told
--#include lib/clock.lua
--#include lib/step.lua
--#include lib/outages.lua
local KEYS_PER_SHARD = 21

-- Makes the fixed keys of a new shard, or of one whose store was lost.
local function found(k)
  -- The value is too long for a listpack: even few reports live in a hash table, so that writing one scans nothing.
  redis.call('HSET', k[3], '!', string.rep('.', 65))
  redis.call('HSET', k[4], '!', '')
  for _, i in ipairs({7, 8, 11, 14, 15, 18, 19, 20, 21}) do redis.call('ZADD', k[i], '9007199254740991', '!') end
  redis.call('SADD', k[6], '!')
  for _, i in ipairs({9, 12, 13, 16, 17}) do redis.call('ZADD', k[i], 0, '!') end
  if redis.call('EXISTS', k[2]) == 0 then redis.call('RPUSH', k[2], '!') end
  if redis.call('EXISTS', k[10]) == 0 then
    redis.call('XADD', k[10], '*', 'type', 'system.shard_started', 'time', now)
  end
end

local reply = {now}
for first = 1, #KEYS - KEYS_PER_SHARD + 1, KEYS_PER_SHARD do
  local last = first + KEYS_PER_SHARD - 1
  local replicas = KEYS[first + 4]
  local L, gap = step(KEYS[first], KEYS[first + 1])
  redis.call('ZADD', replicas, now, ARGV[1])
  tell_outages(KEYS[first], KEYS[first + 1], KEYS[first + 9])
  if redis.call('EXISTS', unpack(KEYS, first, last)) < KEYS_PER_SHARD then found({unpack(KEYS, first, last)}) end
  redis.call('ZREMRANGEBYSCORE', replicas, '-inf', now - ARGV[2])
  -- Those from before the clock was put back are not counted.
  reply[#reply + 1] = {L, gap, redis.call('ZRANGEBYSCORE', replicas, '-inf', now)}
end
local meta = #KEYS % KEYS_PER_SHARD == 1 and KEYS[#KEYS]
if meta and redis.call('EXISTS', meta) == 0 then redis.call('HSET', meta, 'shards', ARGV[3]) end
return reply
