-- Purpose: records how far a shard's events have been taken into the queues of webhooks.
-- Guarantees: only from where the collector began, and only where it knew of all webhooks.
-- KEYS: 1 lubdub:{shard}:eventmarks
-- ARGV: 1 version of the webhooks that it knew, 2 entry that had been taken, 3 entry that has been now, 4 mark of what that says,
--   5 1 where there are no webhooks any more: nothing is kept for them
-- Reply: 1, or 0 where nothing was recorded
-- Cost: O(1)
local f = redis.call('HMGET', KEYS[1], 'version', 'taken')
if (f[1] or '') ~= ARGV[1] or f[2] ~= ARGV[2] then return 0 end
if ARGV[5] == '1' then
  redis.call('HDEL', KEYS[1], 'taken', 'mark')
else
  redis.call('HSET', KEYS[1], 'taken', ARGV[3], 'mark', ARGV[4])
end
return 1
