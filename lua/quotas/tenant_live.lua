-- Purpose: counts a tenant's entries in some states, workspace by workspace.
-- Guarantees: writes nothing; bounded by the limit.
-- KEYS: 1 lubdub:{shard}:ix or …:workers
-- ARGV: 1 tenant, 2 states that count, a letter each, 3 workspace after which to begin, or '', 4 limit of workspaces
-- Reply: {their number, workspace after which there may be more, or ''}
-- Cost: O(log n) for each workspace and state
local tenant, after, count = ARGV[1] .. '/', ARGV[3], 0
for n = 1, tonumber(ARGV[4]) do
  local from = after == '' and '[' .. tenant or '(' .. tenant .. after .. '/\255'
  local head = redis.call('ZRANGEBYLEX', KEYS[1], from, '(' .. ARGV[1] .. '0', 'LIMIT', 0, 1)[1]
  if not head then return {count, ''} end
  after = string.match(head, '^[^/]*/([^/]*)/')
  for state in string.gmatch(ARGV[2], '.') do
    local of = tenant .. after .. '/' .. state
    count = count + redis.call('ZLEXCOUNT', KEYS[1], '(' .. of .. '/', '(' .. of .. '0')
  end
end
return {count, after}
