-- Purpose: drops heartbeat timeouts by which nobody lives any more, each with its set.
-- Guarantees: it is checked again that a set holds nothing but its sentinel, so that an attempt which came in between
--   stays; whatever puts an attempt into a set later makes the set and its entry anew (lib/shard.lua, ensure_beats).
--   Repeating it changes nothing. It only frees.
-- KEYS: 1 lubdub:{shard}:timeouts, then …:beats:<timeoutMs> of each timeout
-- ARGV: the timeouts, ms
-- Reply: how many were dropped
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
