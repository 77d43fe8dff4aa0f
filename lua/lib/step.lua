-- Purpose: the one writer of shard time; beats, empty beats and holds call it before they write anything else. Needs
-- clock.
local WRITE_AFTER_MS = 50
local LONGEST_MS = 60000 -- of one entry about time that was held back

-- Records that shard time ran `ran` ms of the last `gap`: evidence, which decides nothing. Time that is held back falls
-- behind a little in each step; that is one entry, which is open until the hold is over. o counts those to be told.
local function record(clock, outages, L, m, gap, ran, held)
  local still, half, slow, open = string.match(held or '', '^(%d+)\t(%d+)\t(%d+)\t(.*)$')
  local function lasts(hold) return tonumber(hold) > now and hold - now <= MAX_HOLD_MS end
  local holding = still and (lasts(still) or lasts(half) or lasts(slow))
  local from, lost = m, gap - ran
  if open == '1' then
    local _, since, before, all = string.match(redis.call('LINDEX', outages, 0) or '', '^(%d+)\t(%d+)\t(%d+)\t(%d+)$')
    if since then
      from, lost, ran = tonumber(since), lost + tonumber(before), ran + tonumber(all)
    else
      open = '' -- the store lost the entry
    end
  end
  local entry = string.format('%.0f\t%.0f\t%.0f\t%.0f', L, from, lost, ran)
  if open == '1' then
    redis.call('LSET', outages, 0, entry)
  elseif lost > 0 then
    redis.call('LPUSH', outages, entry)
    redis.call('LTRIM', outages, 0, 999)
  end
  open = lost > 0 and holding and now - from < LONGEST_MS
  if lost > 0 and not open then redis.call('HINCRBY', clock, 'o', 1) end
  if holding then
    redis.call('HSET', clock, 'h', still .. '\t' .. half .. '\t' .. slow .. '\t' .. (open and '1' or ''))
  elseif held then
    redis.call('HDEL', clock, 'h')
  end
end

-- Moves shard time on and returns it with the wall ms since it was last written. A clock written less than 50 ms
-- ago is left as it is: everyone computes the same time from it, and a write for every batch would cost each of its
-- beats. `write_after` is given by who must write it sooner. Of a clock that was not there the gap is -1.
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
