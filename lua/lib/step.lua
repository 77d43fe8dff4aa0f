-- Purpose: the one writer of shard time; beats, empty beats and slowclock.lua call it before they write anything. Needs
-- clock.
--#include lib/outage.lua
local WRITE_AFTER_MS = 50
local LONGEST_MS = 60000 -- of one entry about time that was slowed

-- Records that shard time ran `ran` ms of the last `gap`: evidence, which decides nothing. An entry is about one speed,
-- so that a part of it can be reckoned: 1 it stood, 2 it ran at a tenth, 3 at half speed, since beats were refused; 5
-- it stood since nothing landed. Of 4, full speed, nothing is kept. Time that is slowed falls behind a little in
-- each step; that is one entry, which is open until that is over. o counts those to be told.
local function record(clock, outages, L, m, gap, ran, slowed)
  local until_still, until_half, until_slow, open = unpack_slowed(slowed)
  local moved = math.min(gap, MAX_STEP_MS)
  local still, slow, half = 0, 0, 0
  if slowed then still, slow, half = slowed_in(moved, m, slowed) end
  local full = moved - still - slow - half
  local at_tenth, at_half = slow_run(m, still, slow, half)
  local lasted, passed = {still, slow, half, full, gap - moved}, {0, at_tenth, at_half, full, 0}
  if gap > moved then -- time stood before its last ms, so that who lands now is known to have come after
    local last = full > 0 and 4 or passed[3] > 0 and 3 or passed[2] > 0 and 2
    if last then lasted[last], passed[last] = lasted[last] - 1, passed[last] - 1 end
  end

  open = tonumber(open)
  local at, wall, since, told = L - ran, m, nil, 0
  for speed = 1, 5 do
    if lasted[speed] > 0 then
      at = at + passed[speed]
      local lost, all = lasted[speed] - passed[speed], passed[speed]
      local from
      if open == speed then
        local _, began, was_lost, was_all = unpack_outage(redis.call('LINDEX', outages, 0))
        from = began -- nil: the store lost the entry
        if from then lost, all = lost + was_lost, all + was_all end
      elseif open then
        told = told + 1
      end
      since = tonumber(from) or speed == 5 and m or wall
      local entry = pack_outage(at, since, lost, all)
      if from then
        redis.call('LSET', outages, 0, entry)
      elseif lost > 0 then
        redis.call('LPUSH', outages, entry)
        redis.call('LTRIM', outages, 0, 999)
      end
      open = lost > 0 and speed or nil
      wall = wall + lasted[speed]
    end
  end

  local function lasts(till) return till and tonumber(till) > now and till - now <= MAX_SLOW_MS end
  local speed = lasts(until_still) and 1 or lasts(until_slow) and 2 or lasts(until_half) and 3
  if open and (open ~= speed or now - since >= LONGEST_MS) then
    told, open = told + 1, nil
  end
  if told > 0 then redis.call('HINCRBY', clock, 'o', told) end
  if speed then
    redis.call('HSET', clock, 'h', pack_slowed(until_still, until_half, until_slow, open))
  elseif slowed then
    redis.call('HDEL', clock, 'h')
  end
end

-- Moves shard time on and returns it with the wall ms since it was last written. A clock written less than 50 ms
-- ago is left as it is: everyone computes the same time from it, and a write for every batch would cost each of its
-- beats. `write_after` is given by whoever must write it sooner. Of a clock that was not there the gap is -1.
local function step(clock, outages, write_after)
  local c = redis.call('HMGET', clock, 'L', 'm', 'h')
  local L, m = tonumber(c[1]), tonumber(c[2])
  local gap = m and L and now - m or -1
  local writes = gap < 0 or gap >= (write_after or WRITE_AFTER_MS)
  if not L or not m then
    L = now
  elseif gap > 0 then
    local ran = ran_in(gap, m, c[3])
    L = L + ran
    if writes and (ran < gap or c[3]) then record(clock, outages, L, m, gap, ran, c[3]) end
  end
  if writes then redis.call('HSET', clock, 'L', L, 'm', now) end
  return L, gap
end
