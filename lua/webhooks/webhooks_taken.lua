-- Purpose: records how far a shard's events have been taken into the queues of webhooks.
-- Guarantees: only from the position where the collector began, and only if it knew of all webhooks.
-- KEYS: 1 lubdub:{shard}:eventmarks
-- ARGV: 1 version of the webhooks that it knew, 2 previous last entry, 3 new last entry, 4 mark of its content, 5 1 if there
--   are no webhooks any more: nothing is kept for them
-- Reply: 1, or 0 if nothing was recorded
-- Cost: O(1)
local f = redis.call('HMGET', KEYS[1], 'version', 'taken')
if (f[1] or '') ~= ARGV[1] or f[2] ~= ARGV[2] then return 0 end
if ARGV[5] == '1' then
  redis.call('HDEL', KEYS[1], 'taken', 'mark')
else
  redis.call('HSET', KEYS[1], 'taken', ARGV[3], 'mark', ARGV[4])
end
return 1
