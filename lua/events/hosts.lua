-- Purpose: reads where workers run and what, which never changes.
-- Guarantees: writes nothing.
-- KEYS: lubdub:{shard}:worker:<scope>/<id> of each worker
-- ARGV: none
-- Reply: for each worker its machine ('': there is no such worker) and its version ('': it said none)
-- Cost: O(workers)
local reply = {}
for _, key in ipairs(KEYS) do
  local f = redis.call('HMGET', key, 'm', 'v')
  reply[#reply + 1] = f[1] or ''
  reply[#reply + 1] = f[2] or ''
end
return reply
