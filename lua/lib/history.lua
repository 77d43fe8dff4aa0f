-- Purpose: an entry of a task's history about an ended attempt, and how to find it: the list is in the order of attempt
--   numbers. TAB-separated: attempt, fence, worker, dispatched, begun and ended wall ms, outcome, reason, retry; evidence of a
--   verdict: last heartbeat wall ms, silent ms, timeout ms, credit ms, lag ms, sweeper; percent and message of the last
--   report, error, last heartbeat, completed, why its worker ended, 1 if the brake held it, metrics. Readers use positions, so
--   new fields come last.
local LONGEST_HISTORY = 100

-- `f`: record of the task; `ended`: see append_history in lib/task.lua. Needs digits.
local function pack_ended(f, pct, message, ended)
  local e = ended.e
  local evidence, worker_end = '\t\t\t\t\t', '\t'
  if e then
    evidence = (e.last or '') .. '\t' .. (e.silent or '') .. '\t' .. (e.timeout or '') .. '\t' .. e.credit .. '\t'
      .. e.lag .. '\t' .. e.sweeper
    worker_end = (e.worker_reason or '') .. '\t' .. (e.held and '1' or '')
  end
  -- one concatenation: table.concat takes five times as long
  return digits(f.a) .. '\t' .. (f.f or '') .. '\t' .. (f.w or '') .. '\t'
    .. (f.d or '') .. '\t' .. (f.b or '') .. '\t' .. NOW .. '\t' .. ended.outcome .. '\t' .. (ended.reason or '')
    .. '\t' .. (ended.retry or '') .. '\t' .. evidence .. '\t' .. (pct or '') .. '\t' .. (message or '') .. '\t'
    .. (ended.err or '') .. '\t' .. (ended.last_beat or '') .. '\t' .. (ended.completed or '') .. '\t' .. worker_end .. '\t'
    .. (ended.metrics or '')
end

-- Returns its fence, worker, time of dispatch, outcome, reason and retry; nothing if there is no entry.
local function unpack_ended(entry)
  return string.match(entry or '',
    '^%d+\t([^\t]*)\t([^\t]*)\t([^\t]*)\t[^\t]*\t[^\t]*\t([^\t]*)\t([^\t]*)\t([^\t]*)')
end

-- Returns the entry, or nil. Unless the store lost some, its distance from the end is the distance of its number from the
-- current one, so that position is tried first; further tries halve the rest. `current`: number of the task's attempt;
-- `state`: that of the task, whose live attempt has no entry.
local function entry_of(history, attempt, current, state)
  local newest, oldest = 1, LONGEST_HISTORY -- counted from the end
  local live = (state == 'D' or state == 'R') and 1 or 0
  local at = current - live - attempt + 1
  while newest <= oldest do
    at = math.max(newest, math.min(at, oldest))
    local entry = redis.call('LINDEX', history, -at)
    local number = entry and tonumber(string.match(entry, '^%d+')) or 0 -- 0: there are fewer
    if number == attempt then return entry end
    if number < attempt then oldest = at - 1 else newest = at + 1 end
    at = math.floor((newest + oldest) / 2)
  end
end
