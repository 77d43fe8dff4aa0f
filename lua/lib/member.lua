-- Purpose: the name of an attempt in sets and hashes: <scope>/<task>#<attempt>.<fence>. Needs digits to pack one.
local function member_of(task) return task.name .. '#' .. digits(task.f.a) .. '.' .. (task.f.f or '') end

-- Returns the scope and the task's id, the task's name, which is both, and <attempt>.<fence>. Plain searches take half as long
-- as a pattern.
local function task_in(member)
  local tenant = string.find(member, '/', 1, true)
  local scope = string.find(member, '/', tenant + 1, true)
  local name = string.find(member, '#', scope + 1, true)
  return string.sub(member, 1, scope - 1), string.sub(member, scope + 1, name - 1), string.sub(member, 1, name - 1),
    string.sub(member, name + 1)
end

-- Returns <attempt>.<fence>.
local function attempt_in(member) return string.match(member, '#(.*)$') end

-- Returns the scope; nil for the sentinel.
local function scope_in(member) return string.match(member, '^[^/]*/[^/]*') end
