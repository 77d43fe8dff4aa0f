-- Purpose: returns which worker has an identity now.
-- Guarantees: writes nothing; worker_register.lua checks it again.
-- KEYS: 1 lubdub:{shard}:identity:<scope>/<identity>
-- ARGV: none
-- Reply: {worker id or ''}
-- Cost: O(1)
return {redis.call('GET', KEYS[1]) or ''}
