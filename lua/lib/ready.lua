-- Purpose: an entry of the tasks that wait to be claimed: <class><ready since>/<task>/<timeout ms>/<run>.

-- Tasks with the same requirements form one class: <scope>/<queue>/<pin>/<type>/<runtime>/<labels>/, each part empty without a
-- requirement. The entries of a class are adjacent, oldest first.
local function class_of(task)
  local f = task.f
  return task.scope .. '/' .. f.q .. '/' .. (f.pn or '') .. '/' .. (f.y or '') .. '/' .. (f.rn or '') .. '/'
    .. (f.wl or '') .. '/'
end

-- What follows the class is all that a claim needs to name the task's keys.
local function ready_entry(task)
  local f = task.f
  return class_of(task) .. string.format('%013.0f', tonumber(f.rd)) .. '/' .. task.id .. '/' .. f.t .. '/'
    .. (f.u or '')
end

-- Returns the class: the seven parts <tenant>/<workspace>/<queue>/<pin>/<type>/<runtime>/<labels>/.
local function class_in(entry) return string.match(entry, '^[^/]*/[^/]*/[^/]*/[^/]*/[^/]*/[^/]*/[^/]*/') end

-- Returns the worker that the task is pinned to, or ''.
local function pin_in(entry) return string.match(entry, '^[^/]*/[^/]*/[^/]*/([^/]*)/') end
