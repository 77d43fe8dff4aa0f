-- Purpose: since when, and until when, holds of time for balancers follow each other, as the clock has it in w. Needs clock.
local HELD_MS = 1000 -- since an empty beat has last found that clients may be cut off

local function pack_holds(since, last) return string.format('%.0f\t%.0f', since, last) end

-- Returns both in wall ms; nothing if time was not held.
local function unpack_holds(packed)
  local since, last = string.match(packed or '', '^(%d+)\t(%d+)$')
  return tonumber(since), tonumber(last)
end

-- Reports whether clients may be cut off from all replicas.
local function may_be_held(clock)
  local _, last = unpack_holds(redis.call('HGET', clock, 'w'))
  return last and last <= now and now - last < HELD_MS
end
