-- Purpose: lists the tasks that wait in a shard for one worker alone.
-- Guarantees: writes nothing.
-- KEYS: 1 lubdub:{shard}:ready
-- ARGV: 1 <scope>/<queue>/<worker>, 2 entry after which to begin, or '', 3 limit
-- Reply: entries of ready (lib/ready.lua)
-- Cost: O(log n + limit)
local from = ARGV[2] ~= '' and '(' .. ARGV[2] or '[' .. ARGV[1] .. '/'
return redis.call('ZRANGEBYLEX', KEYS[1], from, '(' .. ARGV[1] .. '0', 'LIMIT', 0, ARGV[3])
