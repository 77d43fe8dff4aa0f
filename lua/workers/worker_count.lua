-- Purpose: counts the workers of a shard that are not OFFLINE.
-- Guarantees: writes nothing.
-- KEYS: 1 lubdub:{shard}:workerbeats
-- ARGV: none
-- Reply: {workers}
-- Cost: O(log n)
return {redis.call('ZCOUNT', KEYS[1], '-inf', '(9007199254740991')}
