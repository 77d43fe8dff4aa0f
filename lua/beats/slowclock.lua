-- Purpose: slows shard time down for a moment, since beats of the shard are being refused: by Redis, then it stands; by
--   a front end that is full, then it runs at half speed.
-- Guarantees: what has passed counts as it did; repeating it is harmless; the moment ends by itself.
-- KEYS: 1 lubdub:{shard}:clock, 2 …:outages
-- ARGV: 1 ms for which it stands from now on, or 0, 2 ms for which it runs at half speed, or 0, 3 1 to end a slowdown for
--   balancers, else ''
-- Reply: shard time ms
-- Cost: O(1)
--#include lib/clock.lua
--#include lib/step.lua
--#include lib/slowclock.lua
local L = step(KEYS[1], KEYS[2], 1)
slow_clock(KEYS[1], L, tonumber(ARGV[1]), tonumber(ARGV[2]), 0)
if ARGV[3] == '1' then all_but_few_beat(KEYS[1], L) end
return L
