-- Purpose: wakes waiting claims. Every replica listens to one channel of its database, whose name For inserts (lua.go). The
--   messages name the claims to wake: those that wait for a queue or a class of its tasks, as <shard>/<class>, or those of one
--   worker, as w/<scope>/<worker>.
local function wake(whom) redis.call('PUBLISH', 'lubdub:wake', whom) end

-- `key`: any of the shard's.
local function wake_queue(key, class) wake(string.match(key, '{(%d+)}') .. '/' .. class) end

local function wake_worker(name) wake('w/' .. name) end
