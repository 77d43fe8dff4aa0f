-- Purpose: counts the entries of a set that is ordered by name, group by group: those whose names begin with the same parts.
-- Guarantees: writes nothing; bounded by the limit.
-- KEYS: 1 lubdub:{shard}:ix or …:workers
-- ARGV: 1 the common prefix of the names, with its final '/', 2 number of further parts that identify a group, 3 group after
--   which to begin, without its last '/', or '', 4 limit of groups
-- Reply: {{first entry of each group}, {its entries}}
-- Cost: O(log n) for each group
local prefix, limit = ARGV[1], tonumber(ARGV[4])
local parts = '^' .. string.rep('[^/]*/', tonumber(ARGV[2]))
local heads, counts = {}, {}
local from, to = ARGV[3] == '' and '[' .. prefix or '[' .. ARGV[3] .. '0', '(' .. string.sub(prefix, 1, -2) .. '0' -- which follows '/'
while #heads < limit do
  local head = redis.call('ZRANGEBYLEX', KEYS[1], from, to, 'LIMIT', 0, 1)[1]
  if not head then break end
  local group = prefix .. string.match(string.sub(head, #prefix + 1), parts)
  from = '[' .. string.sub(group, 1, -2) .. '0'
  heads[#heads + 1] = head
  counts[#counts + 1] = redis.call('ZLEXCOUNT', KEYS[1], '[' .. group, '(' .. string.sub(from, 2))
end
return {heads, counts}
