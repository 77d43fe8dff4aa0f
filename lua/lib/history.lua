-- Purpose: an entry of a task's history, about an ended attempt, and where to find it: the list holds them in the order
-- of their numbers. TAB-separated: attempt, fence, worker, dispatched, begun and ended wall ms, outcome, reason, retry;
-- evidence of a verdict: last beat wall ms, silent ms, timeout ms, credit ms, lag ms, sweeper; percent and message of the
-- last report, error, last beat, completed, why its worker ended, 1 when the brake spared it, metrics. Readers go by
-- place, so what is new stands last.
local LONGEST_HISTORY = 100

-- `f`: record of the task; `ended`: see remember in lib/task.lua. Needs digits.
local function pack_ended(f, pct, message, ended)
  local e = ended.e
  local evidence, told = '\t\t\t\t\t', '\t'
  if e then
    evidence = (e.last or '') .. '\t' .. (e.silent or '') .. '\t' .. (e.timeout or '') .. '\t' .. e.credit .. '\t'
      .. e.lag .. '\t' .. e.sweeper
    told = (e.worker_reason or '') .. '\t' .. (e.spared and '1' or '')
  end
  -- one concatenation: table.concat takes five times as long
  return digits(f.a) .. '\t' .. (f.f or '') .. '\t' .. (f.w or '') .. '\t'
    .. (f.d or '') .. '\t' .. (f.b or '') .. '\t' .. NOW .. '\t' .. ended.outcome .. '\t' .. (ended.reason or '')
    .. '\t' .. (ended.retry or '') .. '\t' .. evidence .. '\t' .. (pct or '') .. '\t' .. (message or '') .. '\t'
    .. (ended.err or '') .. '\t' .. (ended.heard or '') .. '\t' .. (ended.completed or '') .. '\t' .. told .. '\t'
    .. (ended.metrics or '')
end

-- Returns its fence, worker, time of dispatch, outcome, reason and retry; nothing where there is none.
local function unpack_ended(entry)
  return string.match(entry or '',
    '^%d+\t([^\t]*)\t([^\t]*)\t([^\t]*)\t[^\t]*\t[^\t]*\t([^\t]*)\t([^\t]*)\t([^\t]*)')
end

-- Returns the entry, or nil. It stands as far from the end as its number is from the current one's unless the store
-- lost some, so that place is tried first; further tries halve what is left. `current`: number of the task's attempt;
-- `state`: that of the task, whose live attempt has no entry.
local function entry_of(history, attempt, current, state)
  local newest, oldest = 1, LONGEST_HISTORY -- counted from the end
  local live = (state == 'D' or state == 'R') and 1 or 0
  local at = current - live - attempt + 1
  while newest <= oldest do
    at = math.max(newest, math.min(at, oldest))
    local entry = redis.call('LINDEX', history, -at)
    local number = entry and tonumber(string.match(entry, '^%d+')) or 0 -- 0: there are not so many
    if number == attempt then return entry end
    if number < attempt then oldest = at - 1 else newest = at + 1 end
    at = math.floor((newest + oldest) / 2)
  end
end
