-- Purpose: an attempt as sets and hashes name it: <scope>/<task>#<attempt>.<fence>. Needs digits where one is packed.
local function member_of(task) return task.name .. '#' .. digits(task.f.a) .. '.' .. (task.f.f or '') end

-- Returns the scope and the task's id.
local function task_in(member) return string.match(member, '^([^/]*/[^/]*)/([^#]*)#') end

-- Returns <attempt>.<fence>.
local function attempt_in(member) return string.match(member, '#(.*)$') end

-- Returns the scope; nil for the sentinel.
local function scope_in(member) return string.match(member, '^[^/]*/[^/]*') end
