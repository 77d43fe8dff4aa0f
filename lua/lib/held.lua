-- Purpose: an entry of the attempts that workers hold: <worker>/<attempt>/<timeout ms>/<run>/<claim>, all that recovery,
-- an inventory and a repeated claim need. Needs member where one is packed.

-- The worker that holds the current attempt, nil for pushed tasks, which nobody claims. A task without a timeout of its
-- own was claimed, also where the store has lost its queue.
local function held_by(task) return (task.f.q or task.f.t == '0') and task.f.w end

local function held_entry(task)
  local f = task.f
  return f.w .. '/' .. member_of(task) .. '/' .. f.t .. '/' .. (f.u or '') .. '/' .. (f.ci or '')
end

-- Returns the worker; nil for entries about anything else.
local function holder_in(entry) return string.match(entry, '^([^/]+)/') end
