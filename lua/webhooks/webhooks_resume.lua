-- Purpose: restarts the collection of a shard's events for webhooks if its position is lost.
-- Guarantees: if there is a position nothing changes; else the collection begins with the shard's first event, and there is an
--   event about it.
-- KEYS: 1 lubdub:{shard}:eventmarks, 2 …:events
-- ARGV: none
-- Reply: 1 if it starts again, else 0
-- Cost: O(1), one event
--#include lib/clock.lua
--#include lib/event.lua
if redis.call('HSETNX', KEYS[1], 'taken', '0-0') == 0 then return 0 end
redis.call('HSET', KEYS[1], 'mark', '0')
write_event(KEYS[2], 'system.repaired', {}, '{"what":"missing_marks"}')
return 1
