-- Purpose: lists tasks of one queue that wait to be claimed, class by class, oldest first.
-- Guarantees: writes nothing; bounded by the limits. What it lists must be taken by claim.lua, which checks again.
-- KEYS: 1 lubdub:{shard}:ready, 2 …:paused
-- ARGV: 1 <scope>/<queue>, 2 limit of a class, 3 limit of classes, then for each group of classes its prefix behind
--   that, and the class after which to begin, or '': </><pin>/ for what is pinned to a worker, <//><type>/ for a type
-- Reply: {1 when the queue is paused, else 0, tasks that wait in the queue, {entries}, {for each group the class after
--   which there is more, or ''}}
-- Cost: O(log n) for each class and entry
local queue, limit, classes = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local waiting = redis.call('ZLEXCOUNT', KEYS[1], '[' .. queue .. '/', '(' .. queue .. '/\255')
local pinned = waiting - redis.call('ZLEXCOUNT', KEYS[1], '[' .. queue .. '//', '(' .. queue .. '//\255')
if redis.call('SISMEMBER', KEYS[2], queue) == 1 then return {1, waiting, {}, {}} end
local entries, cut = {}, {}
for i = 4, waiting > 0 and #ARGV or 0, 2 do
  local prefix, after = queue .. ARGV[i], ARGV[i + 1]
  local from = after == '' and '[' .. prefix or '(' .. after .. '\255'
  cut[#cut + 1] = ''
  for n = 1, (string.sub(ARGV[i], 1, 2) == '//' or pinned > 0) and classes + 1 or 0 do
    local head = redis.call('ZRANGEBYLEX', KEYS[1], from, '(' .. prefix .. '\255', 'LIMIT', 0, 1)[1]
    if not head then break end
    if n > classes then
      cut[#cut] = after
      break
    end
    -- Seven parts make the class: <tenant>/<workspace>/<queue>/<pin>/<type>/<runtime>/<labels>/
    after = string.match(head, '^[^/]*/[^/]*/[^/]*/[^/]*/[^/]*/[^/]*/[^/]*/')
    local last = '(' .. after .. '\255'
    for _, entry in ipairs(redis.call('ZRANGEBYLEX', KEYS[1], '[' .. head, last, 'LIMIT', 0, limit)) do
      entries[#entries + 1] = entry
    end
    from = last
  end
end
return {0, waiting, entries, cut}
