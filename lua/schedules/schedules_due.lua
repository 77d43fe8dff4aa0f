-- Purpose: lists which schedules of some shards are due for examination, and the sweepers of these shards.
-- Guarantees: writes nothing. The listed schedules must be handled by scripts that check again.
-- KEYS: for each shard lubdub:{shard}:scheduledue, …:sweepers. On Cluster a call covers one shard only.
-- ARGV: 1 ms after which a silent sweeper does not count, 2 limit of each shard, then for each shard how many of the first
--   entries to skip: a call lists what the previous call did not
-- Reply: wall ms, then for each shard {wall ms at which the next one after these is due, {name and since when, wall ms, for
--   each, longest due first}, {sweepers}}
-- Cost: O(log n + limit) for each shard
--#include lib/clock.lua
local KEYS_PER_SHARD = 2
local reply, limit = {now}, tonumber(ARGV[2])
local live_since = string.format('%.0f', now - ARGV[1])
for k = 1, #KEYS, KEYS_PER_SHARD do
  local from = tonumber(ARGV[2 + (k + 1) / KEYS_PER_SHARD])
  local first = redis.call('ZRANGE', KEYS[k], from, from + limit, 'WITHSCORES') -- one more than the limit
  local due, next = {}, 9007199254740991
  for i = 1, #first, 2 do
    local since = tonumber(first[i + 1])
    if since > now or i > 2 * limit then
      next = since
      break
    end
    due[#due + 1], due[#due + 2] = first[i], since
  end
  reply[#reply + 1] = {next, due, redis.call('ZRANGEBYSCORE', KEYS[k + 1], '(' .. live_since, now)}
end
return reply
