-- Purpose: counts a shard's entries of some scopes.
-- Guarantees: writes nothing.
-- KEYS: 1 lubdub:{shard}:ix, 2 …:workers, 3 …:workerbeats, 4 …:clock, 5 …:braked
-- ARGV: scopes
-- Reply: for each scope its tasks that are SCHEDULED, QUEUED, DISPATCHED, RUNNING, SUCCEEDED, FAILED, CANCELLED, its workers
--   that are ONLINE, DRAINING, OFFLINE, those that are late or lost, those that are lost (held by the brake or not), its
--   machines that are ONLINE, DRAINING, OFFLINE
-- Cost: O(log n) for each scope, 500 workers that are due for a check and 500 entries of the brake; at most 50 scopes a call
--#include lib/clock.lua
local L, reply, lost = shard_time(KEYS[4]), {}, {}
local function count(key, prefix) return redis.call('ZLEXCOUNT', key, '(' .. prefix .. '/', '(' .. prefix .. '0') end
local function count_each(key, prefix, letters)
  for letter in string.gmatch(letters, '.') do reply[#reply + 1] = count(key, prefix .. '/' .. letter) end
end

local function count_lost(name)
  local scope = string.match(name, '^[^/]*/[^/]*')
  if scope and redis.call('ZSCORE', KEYS[2], '|' .. name) then lost[scope] = (lost[scope] or 0) + 1 end
end
local at = string.format('%.0f', L)
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', at, 'LIMIT', 0, 500)) do count_lost(name) end
for _, entry in ipairs(redis.call('ZRANGEBYSCORE', KEYS[5], '(' .. at, '(9007199254740991', 'LIMIT', 0, 500)) do
  if string.sub(entry, 1, 2) == 'w:' then count_lost(string.sub(entry, 3)) end -- its next check is a timeout later
end
for _, scope in ipairs(ARGV) do
  count_each(KEYS[1], scope, 'WQDRSFC')
  count_each(KEYS[2], scope, 'NDF')
  reply[#reply + 1] = count(KEYS[2], '|' .. scope)
  reply[#reply + 1] = lost[scope] or 0
  count_each(KEYS[2], '{' .. scope .. '/m', 'NDF')
end
return reply
