-- Purpose: lists entries of a sorted set that have a time behind a prefix, newest first: verdicts upon a scope's attempts, or the
-- workers that it has lost.
-- Guarantees: writes nothing.
-- KEYS: 1 lubdub:{shard}:ix or lubdub:{shard}:workers
-- ARGV: 1 prefix, 2 from, as 13 digits of wall ms, 3 entry before which to begin, as the reply has it, or a time, 4 limit
-- Reply: {for each what stands behind the prefix in its entry}, how many there are, those past the limit included
-- Cost: O(log n + limit)
local prefix = ARGV[1]
local from, before = '[' .. prefix .. ARGV[2], '(' .. prefix .. ARGV[3]
local found = redis.call('ZREVRANGEBYLEX', KEYS[1], before, from, 'LIMIT', 0, ARGV[4])
for i, entry in ipairs(found) do found[i] = string.sub(entry, #prefix + 1) end
return {found, redis.call('ZLEXCOUNT', KEYS[1], from, before)}
