-- Purpose: briefly slows shard time while heartbeats of the shard are refused: if Redis refuses them, time is paused; if a
--   front end is full, time runs at half speed.
-- Guarantees: time that has passed keeps counting as it did; repeating it is harmless; the slowdown expires.
-- KEYS: 1 lubdub:{shard}:clock, 2 …:outages
-- ARGV: 1 ms for which time is paused from now on, or 0, 2 ms for which it runs at half speed, or 0, 3 1 to end a slowdown for
--   balancers, else ''
-- Reply: shard time ms
-- Cost: O(1)
--#include lib/clock.lua
--#include lib/step.lua
--#include lib/slowclock.lua
local L = step(KEYS[1], KEYS[2], 1)
slow_clock(KEYS[1], L, tonumber(ARGV[1]), tonumber(ARGV[2]), 0)
if ARGV[3] == '1' then end_slowdown(KEYS[1], L) end
return L
