-- Purpose: the keys that every shard has, in the order in which every script about tasks declares them first, and the creation
--   of such keys: Cluster refuses an absent declared key in a migrating slot.
local CLOCK, OUTAGES, TIMEOUTS, TIMERS, DUE, IX, EVENTS, PROGRESS, CANCELS, READY, HELD, OUTBOX = unpack(KEYS, 1, 12)
local TASKS = 13 -- position of the keys of the first task
local NEVER = '9007199254740991' -- score of sentinel members: later than any time
local SENTINEL = '!'             -- no id begins with it

-- How keys that many tasks share are written: at once, unless lib/bulk.lua collects the writes.
local write = redis.call

-- Creates the set of one timeout, and its entry in the list of those that sweepers watch.
local function ensure_beats(beats, timeout)
  if redis.call('SADD', TIMEOUTS, timeout) == 1 then
    redis.call('ZADD', beats, NEVER, SENTINEL)
  end
end
