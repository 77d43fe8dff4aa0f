-- Purpose: reads the fields of tasks that never change and that name their other keys.
-- Guarantees: writes nothing.
-- KEYS: lubdub:{shard}:task:<scope>/<id> of each task
-- ARGV: none
-- Reply: for each task its run ('' : its own) and its heartbeat timeout ms ('' : there is no such task)
-- Cost: O(tasks); at most 200 a call
local reply = {}
for _, key in ipairs(KEYS) do
  local f = redis.call('HMGET', key, 'u', 't')
  reply[#reply + 1] = f[1] or ''
  reply[#reply + 1] = f[2] or ''
end
return reply
