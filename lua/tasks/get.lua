-- Purpose: reads tasks, or a part of each, at one moment.
-- Guarantees: writes nothing.
-- KEYS: lubdub:{shard}:clock, …:outages, …:progress, then of each task lubdub:{shard}:task:<scope>/<id>, …:doc:<scope>/<id>,
--   …:history:<scope>/<id>, …:beats:<timeoutMs>
-- ARGV: 1 part: all, list, glance or labels (lib/view.lua), 2 approximate number of bytes of documents and histories that are
--   read together, or '' for all, then for each task <scope>/<id>
-- Reply: for each task its view (lib/view.lua), or 0 if it does not fit
-- Cost: O(size of the parts); at most 8 tasks a call, and one that exceeds the room
--#include lib/clock.lua
--#include lib/digits.lua
--#include lib/member.lua
--#include lib/record.lua
local CLOCK, OUTAGES, PROGRESS = KEYS[1], KEYS[2], KEYS[3]
--#include lib/credit.lua
--#include lib/view.lua
local part, room, reply = ARGV[1], tonumber(ARGV[2]), {}
for i = 3, #ARGV do
  local first = 4 * i - 8
  local task = {name = ARGV[i], key = KEYS[first], doc = KEYS[first + 1], history = KEYS[first + 2], beats = KEYS[first + 3]}
  local seen = (not room or room > 0) and view(task, part, room)
  if seen and room then room = room - task.bytes end
  reply[i - 2] = seen or 0
end
return reply
