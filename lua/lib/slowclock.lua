-- Purpose: slows shard time down for a moment. Needs clock and a step that has just been written.

-- From now on time is paused for `still` ms, runs at half speed for `half` ms, or at a tenth for `slow` ms; 0: unchanged. A
-- tenth is for times in which heartbeats may be stored: their times stay known to ten ms.
local function slow_clock(clock, L, still, half, slow)
  local until_still, until_half, until_slow, open = unpack_slowed(redis.call('HGET', clock, 'h'))
  local function later(before, ms)
    before = tonumber(before) or 0
    if before - now > MAX_SLOW_MS then before = 0 end
    return string.format('%.0f', ms == 0 and before or math.max(before, now + ms))
  end
  redis.call('HSET', clock, 'L', L, 'm', now,
    'h', pack_slowed(later(until_still, still), later(until_half, half), later(until_slow, slow), open))
end

-- Ends a slowdown to a tenth, and keeps empty beats from starting another one for a moment of shard time (lib/cutoff.lua).
local function end_slowdown(clock, L)
  local until_still, until_half, _, open = unpack_slowed(redis.call('HGET', clock, 'h'))
  if until_still then redis.call('HSET', clock, 'h', pack_slowed(until_still, until_half, '0', open)) end
  redis.call('HSET', clock, 'b', string.format('%.0f', L))
end
