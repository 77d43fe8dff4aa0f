-- Purpose: records once that the mass expiry brake holds what falls silent in a scope, in the home shard of the scope.
-- Guarantees: one event for each time that the brake engages, however many sweepers hold and for however long; none
--   while an operator's release lasts.
-- KEYS: 1 lubdub:{shard}:clock, 2 …:braked, 3 …:events
-- ARGV: 1 scope, 2 ms for which it counts as one and the same, 3 data of the event as JSON
-- Reply: 1 when the brake may hold them, 0 when the scope was released
-- Cost: O(log n)
--#include lib/clock.lua
--#include lib/brake.lua
--#include lib/event.lua
local scope = ARGV[1]
if stands('r:' .. scope) then return 0 end
if not stands('e:' .. scope) then
  write_event(KEYS[3], 'system.mass_expiry_held', {scope = scope}, ARGV[3])
end
remember_until('e:' .. scope, L + ARGV[2])
return 1
