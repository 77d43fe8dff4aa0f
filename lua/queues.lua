-- Purpose: counts what waits in the queues of a scope, class by class.
-- Guarantees: writes nothing; bounded by the limit.
-- KEYS: 1 lubdub:{shard}:ready, 2 …:paused
-- ARGV: 1 <scope>/, 2 class after which to begin, or '', 3 limit of classes
-- Reply: {wall ms, {paused <scope>/<queue> of every scope}, {oldest entry of each class}, {its tasks}}
-- Cost: O(classes × log n + paused queues)
--#include lib/clock.lua
local entries, counts = {}, {}
local from = ARGV[2] == '' and '[' .. ARGV[1] or '(' .. ARGV[2] .. '\255'
while #entries < tonumber(ARGV[3]) do
  local head = redis.call('ZRANGEBYLEX', KEYS[1], from, '(' .. ARGV[1] .. '\255', 'LIMIT', 0, 1)[1]
  if not head then break end
  local class = string.match(head, '^[^/]*/[^/]*/[^/]*/[^/]*/[^/]*/[^/]*/[^/]*/')
  entries[#entries + 1] = head
  counts[#counts + 1] = redis.call('ZLEXCOUNT', KEYS[1], '[' .. class, '(' .. class .. '\255')
  from = '(' .. class .. '\255'
end
return {now, redis.call('SMEMBERS', KEYS[2]), entries, counts}
