-- Purpose: lists the webhooks of a shard by name.
-- Guarantees: writes nothing.
-- KEYS: 1 lubdub:{shard}:webhooks
-- ARGV: 1 prefix of the names, '' for all, 2 name after which to begin, or '', 3 limit
-- Reply: {total number, their names}
-- Cost: O(log n + limit), at most 500
local from = ARGV[2] == '' and '[' .. ARGV[1] or '(' .. ARGV[2]
local till = ARGV[1] == '' and '+' or '(' .. ARGV[1] .. '\255'
if ARGV[1] == '' and ARGV[2] == '' then from = '(!' end -- after the sentinel
local count = redis.call('ZLEXCOUNT', KEYS[1], ARGV[1] == '' and '(!' or '[' .. ARGV[1], till)
return {count, redis.call('ZRANGEBYLEX', KEYS[1], from, till, 'LIMIT', 0, tonumber(ARGV[3]))}
