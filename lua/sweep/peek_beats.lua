-- Purpose: returns the last heartbeats of the attempts that have been silent longest.
-- Guarantees: writes nothing.
-- KEYS: lubdub:{shard}:beats:<timeoutMs> of some timeouts. On Cluster a call covers one shard only.
-- ARGV: none
-- Reply: for each key its first heartbeat in shard time ms, or '' if it has no attempt
-- Cost: O(log n) for each; at most 200 a call
local reply = {}
for i, key in ipairs(KEYS) do
  local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
  reply[i] = first[1] ~= '!' and first[2] or ''
end
return reply
