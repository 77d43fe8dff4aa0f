-- Purpose: lists entries of a sorted set that have a time after a prefix, latest first: verdicts on a scope's attempts, or the
--   workers that it has lost.
-- Guarantees: writes nothing.
-- KEYS: 1 lubdub:{shard}:ix or lubdub:{shard}:workers
-- ARGV: 1 prefix, 2 from, as 13 digits of wall ms, 3 entry before which to begin, as the reply has it, or a time, 4 limit
-- Reply: {the rest of each entry after the prefix}, their number, including those past the limit
-- Cost: O(log n + limit)
local prefix = ARGV[1]
local from, before = '[' .. prefix .. ARGV[2], '(' .. prefix .. ARGV[3]
local found = redis.call('ZREVRANGEBYLEX', KEYS[1], before, from, 'LIMIT', 0, ARGV[4])
for i, entry in ipairs(found) do found[i] = string.sub(entry, #prefix + 1) end
return {found, redis.call('ZLEXCOUNT', KEYS[1], from, before)}
