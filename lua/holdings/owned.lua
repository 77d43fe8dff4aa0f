-- Purpose: returns which attempts were dispatched to a worker, and the contents of their tokens.
-- Guarantees: writes nothing.
-- KEYS: for each attempt lubdub:{shard}:task:<scope>/<id>, …:history:<scope>/<id>
-- ARGV: 1 worker, then the number of each attempt
-- Reply: for each attempt {fence, run or '' (its own), heartbeat timeout ms, interval ms or '', dispatched wall ms, deadline
--   wall ms or ''}, or {0} if it is not the worker's, or {-1} if that is unknown: there is no such task, or attempt yet, or
--   its record has no queue, because it was pushed to the client with its envelope or adopted from its token. A task without
--   its own timeout was claimed nevertheless. The fence of an attempt that the store does not know is '' if its task has ended
--   for good: its callbacks can only learn that end.
-- Cost: O(1) for each, O(log history) for one that is not current; at most 50 a call
--#include lib/history.lua
--#include lib/record.lua
local reply = {}
for i = 2, #ARGV do
  local task, history = KEYS[2 * i - 3], KEYS[2 * i - 2]
  local f = redis.call('HMGET', task, 'a', 'w', 'q', 'f', 'u', 't', 'i', 'd', 'x', 's', 'r')
  local claimed = f[3] or f[6] == '0'
  local found = {claimed and tonumber(ARGV[i]) <= (tonumber(f[1]) or 0) and 0 or -1}
  if claimed and f[1] == ARGV[i] and f[2] == ARGV[1] then
    found = {f[4], f[5] or '', f[6], f[7] or '', f[8] or '', f[9] or ''}
  elseif found[1] == 0 then
    local entry = entry_of(history, tonumber(ARGV[i]), tonumber(f[1]), f[10])
    local fence, worker, dispatched = unpack_ended(entry)
    if worker == ARGV[1] then found = {fence, f[5] or '', f[6], f[7] or '', dispatched, f[9] or ''} end
  elseif claimed and is_final({s = f[10], r = f[11]}) then
    found = {'', f[5] or '', f[6], f[7] or '', f[8] or '', f[9] or ''}
  end
  reply[i - 1] = found
end
return reply
