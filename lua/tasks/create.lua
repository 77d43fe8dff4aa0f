-- Purpose: creates a task, dispatched at once (pushed) or waiting in its queue, and marks its idempotency key, if the key is in
--   the task's shard. With an empty state it only looks the task up.
-- Guarantees: all or nothing; an existing task is left unchanged; a repeat of the same creation (same fence of the creation) is
--   distinguished from another task with that id; nothing is created if the key is known.
-- KEYS: 1–12 the shard's fixed keys (lib/shard.lua), 13 lubdub:{shard}:task:<scope>/<id>, 14 …:doc:<scope>/<id>,
--   15 …:history:<scope>/<id>, 16 …:run:<scope>/<run>, 17 …:beats:<timeoutMs>, 18 …:fences (of workers that ended), and
--   19 …:idem:<scope>/<key>, the idempotency key to mark
-- ARGV: 1 scope, 2 id, 3 state (D or Q), or '' to look it up only, 4 fence of the creation, 5 heartbeat timeout ms, 6 deadline
--   wall ms or '', 7 start timeout ms (D only), 8 when it may start, wall ms, or + and ms from now, or '', 9 hash of the request,
--   stored with the key, 10 how long the key is kept ms, 11 number of record fields, then those as name and value, then the
--   document's fields as name and value
-- Reply: {OK or REPEATED, created ms, worker that it waits for or ''} or {NOT_FOUND} or, for an existing task, {EXISTS,
--   created ms, worker that it waits for or '', schedule that created it or '', queue or ''}, or {KEY_KNOWN, then the reply of
--   idempotency_key.lua}
-- Cost: O(log n), two events
--#include lib/clock.lua
--#include lib/codes.lua
--#include lib/shard.lua
--#include lib/task.lua
--#include lib/idempotency.lua
local idempotency = KEYS[TASKS + KEYS_PER_TASK + 1]
local known = idempotency and known_key(idempotency, ARGV[9])
if known then return {KEY_KNOWN, unpack(known)} end
local task = open_task(TASKS, ARGV[1], ARGV[2])
if task.f then
  if (task.f.o or task.f.f) == ARGV[4] then return {REPEATED, tonumber(task.f.c), task.f.pn or ''} end
  return {EXISTS, tonumber(task.f.c), task.f.pn or '', task.f.sc or '', task.f.q or ''}
end
if ARGV[3] == '' then return {NOT_FOUND} end
local state, fence, timeout, deadline, runAt = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[8]
if string.sub(runAt, 1, 1) == '+' then runAt = digits(now + runAt) end
local waits = runAt ~= '' and tonumber(runAt) > now
local f, record = {a = 0, t = timeout}
task.f = f
if state == 'D' then
  f.a, f.f = 1, fence
  record = {'c', NOW, 't', timeout, 'a', '1', 'f', fence, 'd', NOW}
else
  record = {'c', NOW, 't', timeout, 'o', fence}
  if runAt ~= '' then record[7], record[8] = 'nb', runAt end
  if waits then
    f.n, f.sl = runAt, '1'
    record[9], record[10], record[11], record[12] = 'n', runAt, 'sl', '1'
  else
    record[#record + 1], record[#record + 2] = 'rd', NOW
  end
end
local n, last = #record, 11 + 2 * ARGV[11]
for i = 12, last, 2 do
  f[ARGV[i]] = ARGV[i + 1]
  record[n + 1], record[n + 2] = ARGV[i], ARGV[i + 1]
  n = n + 2
end
if #ARGV > last then redis.call('HSET', task.doc, unpack(ARGV, last + 1)) end
move(task, state, unpack(record))
local bytes = 0
for i = last + 2, #ARGV, 2 do bytes = bytes + #ARGV[i] end
if bytes > LIGHT then add_bytes(task, bytes) end
ensure_beats(task.beats, timeout)
if deadline ~= '' then redis.call('ZADD', DUE, deadline, 'd:' .. task.name) end
emit(task, 'task.created')
if task.f.pl and (not task.f.pn or redis.call('ZSCORE', KEYS[TASKS + KEYS_PER_TASK], task.f.pn)) then
  -- No worker was chosen yet, since the task is not ready, or the chosen worker has just ended: a worker is chosen later.
  unplace(task, waits and runAt or now)
end
if waits then
  redis.call('ZADD', DUE, runAt, 'b:' .. task.name)
elseif state == 'Q' then
  make_ready(task, NOW, true)
end
if state == 'D' then
  redis.call('ZADD', TIMERS, shard_time(CLOCK) + ARGV[7], 's:' .. member_of(task))
  emit(task, 'task.dispatched')
end
if idempotency then
  reserve_key(idempotency, ARGV[10], f.tp or '', 'h', ARGV[9], 'id', task.id, 'f', fence, 'c', NOW, 'w', f.pn or '')
end
return {OK, now, f.pn or ''}
