-- Purpose: counts the tasks of a tenant by size.
-- Guarantees: writes nothing.
-- KEYS: 1 lubdub:{shard}:ix
-- ARGV: 1 tenant
-- Reply: {number of tasks, then for each class of those that are not small (lib/task.lua) its letter and their number}
-- Cost: O(log n) for each class, of which there are at most 58
local sizes = '~' .. ARGV[1] .. '/'
local function count(prefix) return redis.call('ZLEXCOUNT', KEYS[1], '[' .. prefix .. '/', '(' .. prefix .. '0') end
local reply, from = {count(ARGV[1])}, '[' .. sizes
while true do
  local head = redis.call('ZRANGEBYLEX', KEYS[1], from, '(~' .. ARGV[1] .. '0', 'LIMIT', 0, 1)[1]
  if not head then return reply end
  local class = string.sub(head, #sizes + 1, #sizes + 1)
  reply[#reply + 1] = class
  reply[#reply + 1] = count(sizes .. class)
  from = '(' .. sizes .. class .. '/\255'
end
