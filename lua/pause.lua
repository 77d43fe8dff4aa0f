-- Purpose: pauses a queue in one shard, or lets it go on.
-- Guarantees: repeating it changes nothing. A paused queue takes tasks and hands none out (ready.lua, claim.lua).
-- KEYS: 1 lubdub:{shard}:paused
-- ARGV: 1 <scope>/<queue>, 2 1 to pause, '' to go on, 3 1 to wake those who wait for the queue's tasks, else ''
-- Reply: 1
-- Cost: O(1)
redis.call(ARGV[2] == '1' and 'SADD' or 'SREM', KEYS[1], ARGV[1])
if ARGV[3] == '1' then redis.call('PUBLISH', 'lubdub:wake', string.match(KEYS[1], '{(%d+)}') .. '/' .. ARGV[1]) end
return 1
