-- Purpose: counts the workers of a shard by queue, in all scopes.
-- Guarantees: writes nothing.
-- KEYS: 1 lubdub:{shard}:workers
-- ARGV: 1 queue after which to begin, as <scope>/<queue>, or '', 2 limit of queues
-- Reply: for each queue in the order of names <scope>/<queue>, its workers that are ONLINE, those that are DRAINING
-- Cost: O(log n) for each queue
local after, reply = ARGV[1], {}
local function count(queue, status)
  local of = '(}' .. queue .. '/' .. status
  return redis.call('ZLEXCOUNT', KEYS[1], of .. '/', of .. '0')
end

for _ = 1, tonumber(ARGV[2]) do
  local from = after == '' and '[}' or '(}' .. after .. '0' -- '0' follows '/', which comes after the queue
  local entry = redis.call('ZRANGEBYLEX', KEYS[1], from, '(~', 'LIMIT', 0, 1)[1]
  local queue = entry and string.match(entry, '^}([^/]*/[^/]*/[^/]*)/')
  if not queue then break end
  reply[#reply + 1] = queue
  reply[#reply + 1] = count(queue, 'N') + count(queue, 'C')
  reply[#reply + 1] = count(queue, 'D')
  after = queue
end
return reply
