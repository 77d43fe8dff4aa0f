-- Purpose: hands out the next attempt of a task. Needs clock, shard, task and ending; lib/task.lua explains the fields.

-- Ends the current attempt as SUPERSEDED if it is dispatched or running.
local function supersede(task, L)
  if task.f.s ~= 'D' and task.f.s ~= 'R' then return end
  leave_notice(task, 'l', 'attempt_mismatch')
  local score, report = leave(task)
  append_history(task, report, {outcome = 'SUPERSEDED', last_beat = last_heartbeat(task, score, L)})
end

local OF_ATTEMPT = {'b', 'e', 'n', 'r', 'w', 'l', 'cr', 'ci'}

-- Removes the previous attempt's fields and result, and the entries in READY and DUE. A first attempt has few of them.
local function forget_previous(task)
  local f, fields, due = task.f, {}, {}
  for _, name in ipairs(OF_ATTEMPT) do
    if f[name] then fields[#fields + 1] = name end
  end
  if f.rd then
    redis.call('ZREM', READY, ready_entry(task))
    f.rd = nil
    fields[#fields + 1] = 'rd'
  end
  if #fields > 0 then redis.call('HDEL', task.key, unpack(fields)) end
  if f.e then due[1] = 'x:' .. task.name end
  if f.n or f.nb then due[#due + 1] = 'b:' .. task.name end
  if f.pl then due[#due + 1] = 'p:' .. task.name end
  if #due > 0 then redis.call('ZREM', DUE, unpack(due)) end
  if f.a > 0 then forget_result(task) end
end

-- `to`: fence of the new attempt, life of its token in s, start timeout ms (nil: it is started at once), worker that takes it
-- (nil: it is pushed to the client that gets the envelope) and its claim (nil: none).
local function dispatch(task, L, to)
  local f = task.f
  supersede(task, L)
  if not f.o then redis.call('HSET', task.key, 'o', f.f or to.fence) end
  forget_previous(task)
  f.a, f.f, f.w, f.ci, f.b = f.a + 1, to.fence, to.worker, to.claim, not to.start and NOW or nil
  local fields = {'a', f.a, 'f', f.f, 'd', NOW, 'l', to.life}
  for _, name in ipairs({'w', 'ci', 'b'}) do
    if f[name] then fields[#fields + 1], fields[#fields + 2] = name, f[name] end
  end
  move(task, f.b and 'R' or 'D', unpack(fields))
  if held_by(task) then redis.call('ZADD', HELD, 0, held_entry(task)) end
  if f.x then redis.call('ZADD', DUE, f.x, 'd:' .. task.name) end
  emit(task, 'task.dispatched')
  if f.b then
    run(task, L)
  else
    redis.call('ZADD', TIMERS, L + to.start, 's:' .. member_of(task))
  end
end
