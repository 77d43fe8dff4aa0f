-- Purpose: lists task ids by state, in the order of ids, and counts them.
-- Guarantees: writes nothing; one moment for all states, so a task that moves between two states is seen once.
-- KEYS: 1 lubdub:{shard}:ix or …:run:<scope>/<run>
-- ARGV: 1 prefix before the state ('<scope>/' or ''), 2 states to list, a letter each, 3 id after which to begin, or
--   '', 4 limit for each state, 5 states to count, a letter each
-- Reply: {{ids of the first state}, …, {counts}}
-- Cost: O(log n + limit) for each state
local reply, counts = {}, {}
for s in string.gmatch(ARGV[2], '.') do
  local p = ARGV[1] .. s
  local ids = redis.call('ZRANGEBYLEX', KEYS[1], '(' .. p .. '/' .. ARGV[3], '(' .. p .. '0', 'LIMIT', 0, ARGV[4])
  for i, entry in ipairs(ids) do ids[i] = string.sub(entry, #p + 2) end
  reply[#reply + 1] = ids
end
for s in string.gmatch(ARGV[5], '.') do
  local p = ARGV[1] .. s
  counts[#counts + 1] = redis.call('ZLEXCOUNT', KEYS[1], '(' .. p .. '/', '(' .. p .. '0')
end
reply[#reply + 1] = counts
return reply
