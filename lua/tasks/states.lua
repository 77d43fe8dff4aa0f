-- Purpose: reads the states of tasks.
-- Guarantees: writes nothing.
-- KEYS: lubdub:{shard}:task:<scope>/<id> of each task
-- ARGV: none
-- Reply: for each task its state, a letter ('' : the task does not exist), and why it failed or was requeued, or ''
-- Cost: O(tasks); at most 200 a call
local reply = {}
for _, key in ipairs(KEYS) do
  local f = redis.call('HMGET', key, 's', 'r')
  reply[#reply + 1] = f[1] or ''
  reply[#reply + 1] = f[2] or ''
end
return reply
