-- Purpose: has the events of a shard be taken for webhooks again where that is recorded no more.
-- Guarantees: where it is recorded nothing changes; else it begins with the shard's first event, and is told.
-- KEYS: 1 lubdub:{shard}:eventmarks, 2 …:events
-- ARGV: none
-- Reply: 1 where it begins anew, else 0
-- Cost: O(1), one event
--#include lib/clock.lua
--#include lib/event.lua
if redis.call('HSETNX', KEYS[1], 'taken', '0-0') == 0 then return 0 end
redis.call('HSET', KEYS[1], 'mark', '0')
write_event(KEYS[2], 'system.repaired', {}, '{"what":"missing_marks"}')
return 1
