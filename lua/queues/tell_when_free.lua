-- Purpose: asks that a worker's claims be told when one of the attempts that it holds in a shard ends.
-- Guarantees: the next one that ends says so once, on the channel on which waiting claims are woken (lib/wake.lua);
--   repeating it changes nothing. A worker that has ended is not waited for: its fence has cleared away what was asked
--   for it (fence.lua).
-- KEYS: 1 lubdub:{shard}:held, 2 …:fences
-- ARGV: 1 worker
-- Reply: 1; 0 when the worker has ended
-- Cost: O(log n)
if redis.call('ZSCORE', KEYS[2], ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], 0, '~' .. ARGV[1])
return 1
