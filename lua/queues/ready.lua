-- Purpose: lists tasks of one queue that wait to be claimed, class by class, oldest first.
-- Guarantees: writes nothing; bounded by the limits. What it lists must be taken by claim.lua, which checks again.
-- KEYS: 1 lubdub:{shard}:ready, 2 …:paused
-- ARGV: 1 <scope>/<queue>, 2 limit of a class, 3 limit of classes, then for each group of classes its prefix after that, and
--   the class after which to begin, or '': </><pin>/ for what is pinned to a worker, <//><type>/ for a type
-- Reply: {1 if the queue is paused, else 0, tasks that wait in the queue, {entries}, {for each group the class after which
--   there is more, '/' if that is its first, or ''}}
-- Cost: O(log n) for each class and entry; no more than about 250 classes or 500 entries a call
--#include lib/ready.lua
local queue, limit, classes = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local waiting = redis.call('ZLEXCOUNT', KEYS[1], '[' .. queue .. '/', '(' .. queue .. '/\255')
local pinned = waiting - redis.call('ZLEXCOUNT', KEYS[1], '[' .. queue .. '//', '(' .. queue .. '//\255')
if redis.call('ZSCORE', KEYS[2], queue) then return {1, waiting, {}, {}} end
local entries, cut = {}, {}
local budget = 2000 -- of which a group takes 4, a class 8 and an entry 4
for i = 4, waiting > 0 and #ARGV or 0, 2 do
  local prefix, after = queue .. ARGV[i], ARGV[i + 1]
  local from = after == '' and '[' .. prefix or '(' .. after .. '\255'
  cut[#cut + 1] = ''
  budget = budget - 4
  for n = 1, (string.sub(ARGV[i], 1, 2) == '//' or pinned > 0) and classes + 1 or 0 do
    if n > classes or budget <= 0 then
      cut[#cut] = after == '' and '/' or after
      break
    end
    local head = redis.call('ZRANGEBYLEX', KEYS[1], from, '(' .. prefix .. '\255', 'LIMIT', 0, 1)[1]
    if not head then break end
    after = class_in(head)
    local last = '(' .. after .. '\255'
    local of = redis.call('ZRANGEBYLEX', KEYS[1], '[' .. head, last, 'LIMIT', 0, limit)
    for _, entry in ipairs(of) do entries[#entries + 1] = entry end
    budget = budget - 8 - 4 * #of
    from = last
  end
end
return {0, waiting, entries, cut}
