-- Purpose: records, in the home shard of a scope, that the mass-expiry brake holds what falls silent there.
-- Guarantees: one event each time the brake engages, no matter how many sweepers hold and for how long; none while an
--   operator's release lasts.
-- KEYS: 1 lubdub:{shard}:clock, 2 …:braked, 3 …:events
-- ARGV: 1 scope, 2 ms for which it counts as the same engagement, 3 data of the event as JSON
-- Reply: 1 if the brake may hold them, 0 if the scope was released
-- Cost: O(log n)
--#include lib/clock.lua
--#include lib/brake.lua
--#include lib/event.lua
local scope = ARGV[1]
if in_force('r:' .. scope) then return 0 end
if not in_force('e:' .. scope) then
  write_event(KEYS[3], 'system.mass_expiry_held', {scope = scope}, ARGV[3])
end
record_until('e:' .. scope, L + ARGV[2])
return 1
