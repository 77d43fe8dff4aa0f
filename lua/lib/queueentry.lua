-- Purpose: index entries about a queue: its workers, }<scope>/<queue>/<status>/<ability>/<worker>, and its tasks with a
--   dispatched or running attempt, {<scope>/<queue>/<task>. A worker that is ONLINE and cordoned has status C; the ability of
--   one that is ONLINE and not cordoned is a hash of what it can run (tracker/schema/index.go has the same), and empty for
--   others.

-- Unknown fields of a worker are nil or, as HMGET returns them, false.
local function worker_in_queue(scope, id, queue, status, cordoned, types, runtimes, labels)
  local ability = ''
  if status == 'N' and cordoned then
    status = 'C'
  elseif status == 'N' then
    ability = string.sub(redis.sha1hex((types or '') .. '\t' .. (runtimes or '') .. '\t' .. (labels or '')), 1, 16)
  end
  return '}' .. scope .. '/' .. (queue or '') .. '/' .. status .. '/' .. ability .. '/' .. id
end

local function running_in_queue(scope, id, queue) return '{' .. scope .. '/' .. queue .. '/' .. id end
