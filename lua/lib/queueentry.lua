-- Purpose: how the indexes name what a queue has: its workers, }<scope>/<queue>/<status>/<ability>/<worker>, and those of its
-- tasks of which an attempt is dispatched or runs, {<scope>/<queue>/<task>. A worker that is ONLINE and cordoned has status C; the
-- ability of one that is ONLINE and not cordoned is what it can run, hashed (tracker/schema/index.go has the same), of others
-- nothing.

-- What is not known of a worker is nil or, as HMGET has it, false.
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
