-- Purpose: returns when anything in some shards may next be due, and the sweepers of these shards.
-- Guarantees: writes nothing but the sweeper's own presence and changes of the primary. Works above maxmemory, since its first
--   write only frees memory.
-- KEYS: for each shard lubdub:{shard}:clock, …:timers, …:due, …:timeouts, …:sweepers, …:outbox, …:replicas. On Cluster a call
--   covers one shard only.
-- ARGV: 1 sweeper, 2 ms after which a silent sweeper is dropped
-- Reply: wall ms, then for each shard {shard time ms, first timer in shard time ms, first due in wall ms, first notice in the
--   outbox in wall ms, {sweepers}, {timeouts in use, ms}, shard time of the latest change of the primary or 0, 1 while that is
--   in progress, else 0, 1 while replicas may be cut off from their clients, else 0}
-- Cost: O(timeouts in use), at most 437 for each shard
--#include lib/clock.lua
--#include lib/primary.lua
--#include lib/holds.lua
local function head(key) return tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]) or 9007199254740991 end
local KEYS_PER_SHARD = 7
local reply = {now}
local forgotten = string.format('%.0f', now - ARGV[2])
for k = 5, #KEYS, KEYS_PER_SHARD do redis.call('ZREMRANGEBYSCORE', KEYS[k], '-inf', forgotten) end
local own = replication_id()
for k = 1, #KEYS, KEYS_PER_SHARD do
  local L = shard_time(KEYS[k])
  changed = 0
  local changing = redis.call('EXISTS', KEYS[k]) == 1 and note_change(KEYS[k], KEYS[k + 6], L, own)
  reply[#reply + 1] = {L, head(KEYS[k + 1]), head(KEYS[k + 2]), head(KEYS[k + 5]),
    redis.call('ZRANGEBYSCORE', KEYS[k + 4], '(' .. forgotten, now), redis.call('SMEMBERS', KEYS[k + 3]), changed, changing and 1 or 0,
    may_be_held(KEYS[k]) and 1 or 0}
end
for k = 5, #KEYS, KEYS_PER_SHARD do redis.call('ZADD', KEYS[k], now, ARGV[1]) end
return reply
