-- Purpose: wakes waiting requests. Every replica listens to one channel of its database, whose name For inserts (lua.go). The
--   messages name what to wake: the claims that wait for a queue or a class of its tasks, as <shard>/<class>, those of one
--   worker, as w/<scope>/<worker>, or the requests that wait for the end of a task, as t/<scope>/<task>.
local function wake(whom) redis.call('PUBLISH', 'lubdub:wake', whom) end

-- `key`: any of the shard's.
local function wake_queue(key, class) wake(string.match(key, '{(%d+)}') .. '/' .. class) end

local function wake_worker(name) wake('w/' .. name) end

local function wake_awaiting(task) wake('t/' .. task.name) end
