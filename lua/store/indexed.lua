-- Purpose: lists tasks or workers by state, in all scopes, a page at a time.
-- Guarantees: writes nothing; bounded by the limit.
-- KEYS: 1 lubdub:{shard}:ix or …:workers
-- ARGV: 1 where to continue, as replied, or '', 2 states, a letter each, 3 limit
-- Reply: {where to continue, or '' at the end, {<scope>/<state letter>/<name>}}
-- Cost: O(limit × log n)
local from, states, limit, found = ARGV[1], ARGV[2], tonumber(ARGV[3]), {}
if from == '' then from = '0' end -- after the sentinel
for _ = 1, limit do
  local head = redis.call('ZRANGEBYLEX', KEYS[1], '[' .. from, '({', 'LIMIT', 0, 1)[1]
  if not head then return {'', found} end
  local list, state = string.match(head, '^([^/]+/[^/]+/([^/]+))/')
  from = (list or head) .. '0' -- after the whole list
  if state and string.find(states, state, 1, true) then
    local page = redis.call('ZRANGEBYLEX', KEYS[1], '[' .. head, '(' .. from, 'LIMIT', 0, limit - #found)
    for _, entry in ipairs(page) do found[#found + 1] = entry end
    if #found == limit then return {found[limit] .. '!', found} end -- no name continues with that
  end
end
return {from, found}
