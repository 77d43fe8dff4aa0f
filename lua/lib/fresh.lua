-- Purpose: a heartbeat ends the lateness of a worker. Needs clock.
--#include lib/event.lua

-- Called only if sweepers have reported the worker as late (la), or it has responded to a probe since (pb), so each
-- worker.late is followed by one worker.fresh or by the worker's end. `key`, `workers`, `events`: keys; `name`: <scope>/<id>;
-- `silent`: ms since the previous heartbeat, nil if none is recorded.
local function end_lateness(key, workers, events, name, silent)
  redis.call('HDEL', key, 'la', 'pb', 'px')
  redis.call('ZREM', workers, '|' .. name)
  local scope, id = string.match(name, '^(.*)/([^/]*)$')
  local f = redis.call('HMGET', key, 'q', 'm')
  actor = id
  write_event(events, 'worker.fresh', {scope = scope, subject = id, queue = f[1], worker = id, machine = f[2]},
    '{"silentMs":' .. (silent and string.format('%.0f', silent) or 'null') .. '}')
end
