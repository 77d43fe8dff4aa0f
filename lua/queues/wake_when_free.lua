-- Purpose: requests a notification of a worker's claims when one of the attempts that it holds in a shard ends.
-- Guarantees: the next end is announced once, on the channel on which waiting claims are woken (lib/wake.lua); repeating it
--   changes nothing. An ended worker gets no request: its fence has removed it (fence.lua).
-- KEYS: 1 lubdub:{shard}:held, 2 …:fences
-- ARGV: 1 worker
-- Reply: 1; 0 if the worker has ended
-- Cost: O(log n)
if redis.call('ZSCORE', KEYS[2], ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], 0, '~' .. ARGV[1])
return 1
