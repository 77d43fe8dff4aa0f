-- Purpose: counts the waiting tasks in the queues of a scope, in one of them, or in all scopes, class by class.
-- Guarantees: writes nothing; bounded by the limits.
-- KEYS: 1 lubdub:{shard}:ready, 2 …:pauses
-- ARGV: 1 <scope>/, <scope>/<queue>/ or '' for all scopes, 2 class after which to begin, or '', 3 limit of classes, 4 limit of
--   paused queues
-- Reply: {wall ms, {paused <scope>/<queue> among them}, {oldest entry of each class}, {its tasks}}
-- Cost: O(classes × log n + paused queues)
--#include lib/clock.lua
--#include lib/ready.lua
local prefix, entries, counts, paused = ARGV[1], {}, {}, {}
local first, last = '[' .. prefix, '(' .. prefix .. '\255'
if prefix == '' then first, last = '[0', '({' end -- ids begin with a digit or a letter, a sentinel with neither
local from = ARGV[2] == '' and first or '(' .. ARGV[2] .. '\255'
while #entries < tonumber(ARGV[3]) do
  local head = redis.call('ZRANGEBYLEX', KEYS[1], from, last, 'LIMIT', 0, 1)[1]
  if not head then break end
  local class = class_in(head)
  entries[#entries + 1] = head
  counts[#counts + 1] = redis.call('ZLEXCOUNT', KEYS[1], '[' .. class, '(' .. class .. '\255')
  from = '(' .. class .. '\255'
end
local queue = string.match(prefix, '^([^/]*/[^/]*/[^/]+)/$')
if queue then
  if redis.call('ZSCORE', KEYS[2], queue) then paused[1] = queue end
else
  paused = redis.call('ZRANGEBYLEX', KEYS[2], first, last, 'LIMIT', 0, ARGV[4])
end
return {now, paused, entries, counts}
