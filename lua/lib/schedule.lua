-- Purpose: a schedule's record and when sweepers examine it next. Needs clock.
-- Fields of the record (tracker/schema/fields.go), absent when empty or default; times are wall ms:
--   c cron expression; o 1: a fire is skipped while the previous task is running; m how many missed fires are caught up; v
--   version of its definition and of whether it is paused; q queue of its tasks; y their type; sz bytes of its task; nn nonce
--   of the creation; cr when it was created; up when it was changed; p since when it is paused; rs since when it has not been
--   paused; l the last fire that was handled; e 1: there are no more fires; nf number of fires; sk number of skipped fires; su
--   missed fires that no event has reported yet; tk task of the last fire; dc fire whose task is being created; bp pause of its fires
--   after the last one was refused for now, ms; rp waiting fires that a backfill repeats: they have had their tasks, and are not
--   counted again (each followed by a comma); ns since when no request can have used the names of its fires' tasks (1: since its
--   creation).
--#include lib/digits.lua

-- Reads the record at a schedule's key: its fields, or nil when there is none.
local function open_schedule(key)
  local raw = redis.call('HGETALL', key)
  if #raw == 0 then return nil end
  local f = {}
  for i = 1, #raw, 2 do f[raw[i]] = raw[i + 1] end
  return f
end

-- Schedules its next examination by sweepers; '' for never. While fires wait for their tasks, it is when these are due.
local function schedule_check(due, pending, name, next, waiting)
  if redis.call('EXISTS', pending) == 1 then next = waiting end
  if next == '' then
    redis.call('ZREM', due, name)
  else
    redis.call('ZADD', due, next, name)
  end
end

-- An entry about a handled fire: wall ms in 13 digits, kind, outcome, detail and when it was recorded, TAB-separated.
local function pack_fired(ms, kind, outcome, detail) return table.concat({ms, kind, outcome, detail, NOW}, '\t') end

-- Returns a function that reports whether a fire waits for its task, or has got one according to the last handled fires.
local function fire_lookup(pending, fired)
  local got = {}
  for _, entry in ipairs(redis.call('LRANGE', fired, 0, -1)) do
    local ms, outcome = string.match(entry, '^(%d+)\t%a\t(%a)\t')
    if outcome == 'c' then got[ms] = true end
  end
  return function(ms)
    return got[ms] or #redis.call('ZRANGEBYLEX', pending, '[' .. ms .. '/', '(' .. ms .. '0', 'LIMIT', 0, 1) > 0
  end
end
