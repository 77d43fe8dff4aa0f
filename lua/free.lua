-- Purpose: asks that a worker's claims be told when one of the attempts that it holds in a shard ends.
-- Guarantees: the next one that ends says so once, on the channel on which waiting claims are woken (lib/task.lua);
--   repeating it changes nothing.
-- KEYS: 1 lubdub:{shard}:held
-- ARGV: 1 worker
-- Reply: 1
-- Cost: O(log n)
redis.call('ZADD', KEYS[1], 0, '~' .. ARGV[1])
return 1
