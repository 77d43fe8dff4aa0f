-- Purpose: notifies collectors of a shard's events that webhooks have changed, and starts the collection if there was none.
-- Guarantees: from here on no collector that does not know of the change takes an event.
-- KEYS: 1 lubdub:{shard}:eventmarks
-- ARGV: 1 name of the change, 2 entry of the shard's events from which to begin, 0-0 at its first, 3 mark of its content
-- Reply: 1
-- Cost: O(1)
redis.call('HSET', KEYS[1], 'version', ARGV[1])
if not redis.call('HGET', KEYS[1], 'taken') then redis.call('HSET', KEYS[1], 'taken', ARGV[2], 'mark', ARGV[3]) end
return 1
