-- Purpose: a schedule's record and when sweepers look at it next. Needs clock.
-- Fields of the record (tracker/schema/fields.go), absent when empty or default; times are wall ms:
--   c cron expression; o 1: a fire is skipped while the task of the one before runs; m how many missed fires are caught
--   up; v version of what it says and of whether it is paused; q queue of its tasks; y their type; sz bytes of its task; nn
--   nonce of the creation; cr when it was created; up when it was changed; p since when it is paused; rs since when it
--   has not been paused; l the last fire that was dealt with; e 1: no fire is to come any more; nf fires in all; sk skipped
--   fires in all; su missed fires of which no event tells yet; tk task of the last fire; dc fire that is to get a task; bp for
--   how long its fires are let be, since the last was refused for now, ms; rp fires that wait though they have their tasks, which
--   are not counted again, wall ms, each with a comma behind it; ns since when no request can have named the tasks of its
--   fires (1: since its creation).
--#include lib/digits.lua

-- Reads the record at a schedule's key: its fields, or nil when there is none.
local function open_schedule(key)
  local raw = redis.call('HGETALL', key)
  if #raw == 0 then return nil end
  local f = {}
  for i = 1, #raw, 2 do f[raw[i]] = raw[i + 1] end
  return f
end

-- Has sweepers look at it at a time; '' for never. While fires wait for their tasks they look when it is time for these.
local function look_at(due, pending, name, next, waiting)
  if redis.call('EXISTS', pending) == 1 then next = waiting end
  if next == '' then
    redis.call('ZREM', due, name)
  else
    redis.call('ZADD', due, next, name)
  end
end

-- What became of a fire: wall ms in 13 digits, kind, outcome, detail and when that was noted, TAB-separated.
local function pack_fired(ms, kind, outcome, detail) return table.concat({ms, kind, outcome, detail, NOW}, '\t') end

-- Returns a function that tells whether a fire waits for its task, or has got it among the last that were dealt with.
local function knower(pending, fired)
  local got = {}
  for _, entry in ipairs(redis.call('LRANGE', fired, 0, -1)) do
    local ms, outcome = string.match(entry, '^(%d+)\t%a\t(%a)\t')
    if outcome == 'c' then got[ms] = true end
  end
  return function(ms)
    return got[ms] or #redis.call('ZRANGEBYLEX', pending, '[' .. ms .. '/', '(' .. ms .. '0', 'LIMIT', 0, 1) > 0
  end
end
