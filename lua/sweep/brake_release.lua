-- Purpose: keeps the mass expiry brake from sparing anything of a scope in one shard for a while.
-- Guarantees: whatever asks to be spared after this is not; what is spared already is let go by brake_tasks.lua and
--   brake_workers.lua. Repeating it sets the time anew.
-- KEYS: 1 lubdub:{shard}:clock, 2 …:braked
-- ARGV: 1 scope, 2 ms
-- Reply: wall ms at which that is over, if no outage comes in between
-- Cost: O(log n)
--#include lib/clock.lua
--#include lib/brake.lua
redis.call('ZREM', BRAKED, 'e:' .. ARGV[1])
remember_until('r:' .. ARGV[1], L + ARGV[2])
return now + ARGV[2]
