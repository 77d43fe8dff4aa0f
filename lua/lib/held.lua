-- Purpose: an entry of the attempts that workers hold: <worker>/<attempt>/<timeout ms>/<run>/<claim>, which is everything that
--   recovery, an inventory and a repeated claim need. Needs member to pack one.

-- The worker that holds the current attempt, nil for pushed tasks, which are not claimed. A task without its own timeout was
-- claimed, even if the store has lost its queue.
local function held_by(task) return (task.f.q or task.f.t == '0') and task.f.w end

local function held_entry(task)
  local f = task.f
  return f.w .. '/' .. member_of(task) .. '/' .. f.t .. '/' .. (f.u or '') .. '/' .. (f.ci or '')
end

-- Returns the worker; nil for entries of other kinds.
local function holder_in(entry) return string.match(entry, '^([^/]+)/') end
