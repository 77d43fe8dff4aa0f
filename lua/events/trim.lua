-- Purpose: drops events that are too old, or too many, to be kept.
-- Guarantees: the latest event of a shard stays, so that readers keep their positions, and so does what webhooks have not
--   taken yet. It only frees memory. Repeating it drops nothing but what has come due since.
-- KEYS: for each shard lubdub:{shard}:events, …:eventmarks. On Cluster a call covers one shard only
-- ARGV: 1 number of events to keep in a shard, 2 how long to keep them, ms
-- Reply: wall ms, then for each shard {events dropped, 1 if there may be more to drop}
-- Cost: O(events dropped), at most 5,000 of a shard in whole nodes of the stream, and 100 more
--#include lib/clock.lua
--#include lib/streamid.lua
local AT_ONCE, CHUNK, BEHIND = 5000, 100, 50
local limit, age = tonumber(ARGV[1]), tonumber(ARGV[2])

-- Drops what is before an id: whole nodes of the stream first, which costs next to nothing.
local function drop_before(events, id)
  local dropped = redis.call('XTRIM', events, 'MINID', '~', id, 'LIMIT', AT_ONCE)
  if dropped < AT_ONCE then dropped = dropped + redis.call('XTRIM', events, 'MINID', '=', id) end
  return dropped
end

-- Drops what is too old, but nothing from `first` on.
local function drop_old(events, first)
  local since = string.format('%.0f', math.max(0, now - age)) .. '-0'
  return drop_before(events, is_newer(since, first) and first or since)
end

-- Drops what is beyond the limit, but nothing from `first` on if webhooks are far behind.
local function drop_many(events, first, taken)
  local over = redis.call('XLEN', events) - limit
  if over <= 0 then return 0 end
  local behind = math.min(BEHIND, limit - 1)
  if not taken or #redis.call('XRANGE', events, taken, '+', 'COUNT', behind + 1) <= behind then
    return redis.call('XTRIM', events, 'MAXLEN', '~', limit, 'LIMIT', AT_ONCE)
  end
  local some = redis.call('XRANGE', events, '-', '+', 'COUNT', math.min(over, CHUNK) + 1)
  local last = some[#some][1]
  return redis.call('XTRIM', events, 'MINID', '=', is_newer(last, first) and first or last)
end

local reply = {now}
for k = 1, #KEYS, 2 do
  local newest, taken = redis.call('XREVRANGE', KEYS[k], '+', '-', 'COUNT', 1)[1], redis.call('HGET', KEYS[k + 1], 'taken')
  local dropped, more = 0, 0
  if newest then
    local first = taken and is_newer(newest[1], taken) and taken or newest[1]
    local old = drop_old(KEYS[k], first)
    local many = drop_many(KEYS[k], first, taken)
    dropped, more = old + many, (old >= AT_ONCE or many >= CHUNK) and 1 or 0
  end
  reply[#reply + 1] = {dropped, more}
end
return reply
