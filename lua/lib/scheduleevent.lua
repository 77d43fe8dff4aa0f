-- Purpose: events about schedules. Needs clock.
--#include lib/event.lua
local function emit_schedule(events, type, scope, id, f, data)
  write_event(events, type, {scope = scope, subject = id, queue = f.q, kind = f.y}, data)
end
