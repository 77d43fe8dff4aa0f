-- Purpose: counts a part of the attempts that have been silent longest, by scope.
-- Guarantees: writes nothing; bounded by the size of the part.
-- KEYS: 1 lubdub:{shard}:beats:<timeoutMs>
-- ARGV: 1 first, 2 last, both counted from 0
-- Reply: {scope, attempts of it, …}
-- Cost: O(log n + size of the part)
--#include lib/member.lua
local counts, reply = {}, {}
for _, member in ipairs(redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[2])) do
  local scope = scope_in(member)
  if scope then counts[scope] = (counts[scope] or 0) + 1 end -- the sentinel has none, and moves up when others are removed
end
for scope, n in pairs(counts) do
  reply[#reply + 1] = scope
  reply[#reply + 1] = n
end
return reply
