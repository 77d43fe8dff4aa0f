-- Purpose: counts a part of the attempts that the mass-expiry brake holds, by scope, since their scores do not show how long
--   they are silent.
-- Guarantees: writes nothing; bounded by the limit. Attempts with a later heartbeat do not count, nor those that their scores
--   show as silent again.
-- KEYS: 1 lubdub:{shard}:clock, 2 …:braked, then …:beats:<timeoutMs> of each timeout
-- ARGV: 1 percent of a timeout after which an attempt counts as silent, 2 number of entries to skip, 3 limit, then the
--   timeouts, ms
-- Reply: {entries examined, scope, attempts of it, …}
-- Cost: O(limit × log n); at most 250 a call
--#include lib/clock.lua
--#include lib/member.lua
--#include lib/brakehold.lua
local L = shard_time(KEYS[1])
local beats, counts = {}, {}
for i = 4, #ARGV do beats[ARGV[i]] = KEYS[i - 1] end
-- By rank: skipped entries are not walked over.
local first = redis.call('ZCOUNT', KEYS[2], '-inf', string.format('%.0f', L)) + ARGV[2]
local entries = redis.call('ZRANGE', KEYS[2], first, first + ARGV[3] - 1, 'WITHSCORES')
if entries[#entries - 1] == '!' then entries[#entries], entries[#entries - 1] = nil, nil end
for i = 1, #entries, 2 do
  local timeout, member = unpack_brake_hold(entries[i])
  local given = timeout and tonumber(entries[i + 1]) - timeout
  if given and L - given < timeout * ARGV[1] / 100 and beats[timeout]
    and tonumber(redis.call('ZSCORE', beats[timeout], member)) == given then
    local scope = scope_in(member)
    counts[scope] = (counts[scope] or 0) + 1
  end
end
local reply = {#entries / 2}
for scope, n in pairs(counts) do
  reply[#reply + 1] = scope
  reply[#reply + 1] = n
end
return reply
