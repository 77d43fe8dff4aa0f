-- Purpose: lists what a worker holds in one shard.
-- Guarantees: writes nothing; bounded by the limit.
-- KEYS: 1 lubdub:{shard}:held
-- ARGV: 1 prefix of its entries: <worker>/<scope>/, 2 entry after which to begin, or '', 3 limit
-- Reply: the entries (lib/held.lua), in their order
-- Cost: O(log n + limit)
local from = ARGV[2] == '' and '[' .. ARGV[1] or '(' .. ARGV[2]
return redis.call('ZRANGEBYLEX', KEYS[1], from, '(' .. ARGV[1] .. '\255', 'LIMIT', 0, ARGV[3])
