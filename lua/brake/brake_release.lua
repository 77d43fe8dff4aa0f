-- Purpose: keeps the mass-expiry brake from holding anything of a scope in one shard for a while.
-- Guarantees: nothing is held after this; brake_tasks.lua and brake_workers.lua release what is already held. Repeating it
--   sets the time again; a call that makes no difference writes no event.
-- KEYS: 1 lubdub:{shard}:clock, 2 …:braked, 3 …:events
-- ARGV: 1 scope, 2 ms, 3 data of the event as JSON, '' if another shard writes it
-- Reply: wall ms at which the release ends, unless an outage delays it
-- Cost: O(log n)
--#include lib/clock.lua
--#include lib/brake.lua
--#include lib/event.lua
local SAME_MS = 10000 -- a caller without a reply repeats the call by then
local till = L + ARGV[2]
local news = math.abs(till - (tonumber(redis.call('ZSCORE', BRAKED, 'r:' .. ARGV[1])) or 0)) > SAME_MS
redis.call('ZREM', BRAKED, 'e:' .. ARGV[1])
record_until('r:' .. ARGV[1], till)
if ARGV[3] ~= '' and news then write_event(KEYS[3], 'system.released', {scope = ARGV[1]}, ARGV[3]) end
return now + ARGV[2]
