-- Purpose: writes the event about a sweep on request, when it is done.
-- Guarantees: repeating it writes nothing.
-- KEYS: 1 lubdub:{shard}:events, 2 …:told:<act>
-- ARGV: 1 data of the event as JSON
-- Reply: 1
-- Cost: O(1)
--#include lib/clock.lua
--#include lib/event.lua
--#include lib/once.lua
if first_time(KEYS[2]) then write_event(KEYS[1], 'system.swept', {}, ARGV[1]) end
return 1
