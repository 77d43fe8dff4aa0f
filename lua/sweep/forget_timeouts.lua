-- Purpose: drops heartbeat timeouts that no attempt uses any more, each with its set.
-- Guarantees: it checks again that a set has nothing but its sentinel, so that an attempt which came in between stays; adding
--   an attempt later creates the set and its entry again (lib/shard.lua, ensure_beats). Repeating it changes nothing. It only
--   frees memory.
-- KEYS: 1 lubdub:{shard}:timeouts, then …:beats:<timeoutMs> of each timeout
-- ARGV: the timeouts, ms
-- Reply: the number of dropped timeouts
-- Cost: O(log n) for each; at most 200 a call
local dropped = 0
for i, timeout in ipairs(ARGV) do
  local first = redis.call('ZRANGE', KEYS[i + 1], 0, 0)[1]
  if not first or first == '!' then
    redis.call('SREM', KEYS[1], timeout)
    redis.call('DEL', KEYS[i + 1])
    dropped = dropped + 1
  end
end
return dropped
