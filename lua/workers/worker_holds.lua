-- Purpose: reads the holds of some lineages.
-- Guarantees: writes nothing.
-- KEYS: lubdub:{shard}:hold:<scope>/<lineage> of each
-- ARGV: none
-- Reply: for each since when it is held, wall ms, and the reason from the request, or '' and '' if it is not held
-- Cost: O(keys), with 600 B each; at most 100 a call
--#include lib/hold.lua
local reply = {}
for _, key in ipairs(KEYS) do
  local _, since, reason = unpack_hold(redis.call('GET', key))
  reply[#reply + 1] = since or ''
  reply[#reply + 1] = reason or ''
end
return reply
