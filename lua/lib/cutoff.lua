-- Purpose: shard time almost stops while balancers may keep all clients from all replicas. Needs clock, step and slowclock.
--#include lib/holds.lua
local CUT_OFF_SLOW_MS = 500 -- repeated with each empty beat while it applies
local MAX_SLOWED = 4 -- times the longest hold, while holds follow each other; then half speed, so that dead members are found

-- For how long time may be slowed after balancers can have learned that all is well: a period, and no longer than the longest
-- timeout in use in the shard, which bounds the delay of every verdict.
local function longest_slow(period, timeouts, workerbeats, of_workers)
  local longest = redis.call('ZCARD', workerbeats) > 1 and tonumber(of_workers) or 0 -- one is the sentinel
  for _, timeout in ipairs(redis.call('SMEMBERS', timeouts)) do
    longest = math.max(longest, tonumber(timeout) or 0)
  end
  return math.min(tonumber(period), longest)
end

-- Records that a replica keeps the shard's time, and whether it may be cut off from its clients: then a mark for it is in the
-- set too. Returns the replicas, and whether all of them may be cut off.
local function record_replica(replicas, id, cut_off, window)
  redis.call('ZADD', replicas, now, id)
  if cut_off then redis.call('ZADD', replicas, now, '~' .. id) else redis.call('ZREM', replicas, '~' .. id) end
  redis.call('ZREMRANGEBYSCORE', replicas, '-inf', now - window)
  local names, marks = {}, 0
  -- Entries from before the clock was set back are not counted.
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', replicas, '-inf', now)) do
    if string.sub(name, 1, 1) == '~' then marks = marks + 1 else names[#names + 1] = name end
  end
  return names, marks == #names
end

-- Slows time while no replica may be reachable for clients, unless a sweeper has just found that all but a few members send
-- heartbeats: b has the shard time of that finding, so it stays valid over an outage, in which no member falls behind. w:
-- since when, and until when, such holds follow each other with less than the longest of them in between, wall ms.
local function slow_cut_off(clock, L, longest)
  local since, last = unpack_holds(redis.call('HGET', clock, 'w'))
  if not since or now < since or now - last > longest then since = now end
  local slow = now - since < MAX_SLOWED * longest
  redis.call('HSET', clock, 'w', pack_holds(since, now))
  local few_late = tonumber(redis.call('HGET', clock, 'b'))
  if few_late and few_late <= L and L - few_late < CUT_OFF_SLOW_MS then return end
  slow_clock(clock, L, 0, slow and 0 or CUT_OFF_SLOW_MS, slow and CUT_OFF_SLOW_MS or 0)
end
