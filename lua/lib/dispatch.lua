-- Purpose: hands out the next attempt of a task. Needs clock, shard, task and ending.

-- Gives up the current attempt, if it is live, in favour of a newer one.
local function supersede(task, L)
  if task.f.s ~= 'D' and task.f.s ~= 'R' then return end
  leave_notice(task, 'l', 'attempt_mismatch')
  local score, report = leave(task)
  append_history(task, report, {outcome = 'SUPERSEDED', last_beat = last_heartbeat(task, score, L)})
end

-- `to`: fence of the new attempt, life of its token in s, start timeout ms, worker that takes it (nil: it is pushed to the
-- client that gets the envelope) and its claim (nil: none).
local function dispatch(task, L, to)
  local f = task.f
  supersede(task, L)
  if not f.o then redis.call('HSET', task.key, 'o', f.f or to.fence) end
  redis.call('HDEL', task.key, 'b', 'e', 'n', 'r', 'w', 'l', 'cr', 'ci')
  forget_result(task)
  redis.call('ZREM', DUE, 'x:' .. task.name, 'b:' .. task.name, 'p:' .. task.name)
  move(task, 'D')
  f.a, f.f, f.w, f.ci = f.a + 1, to.fence, to.worker, to.claim
  redis.call('HSET', task.key, 'a', f.a, 'f', f.f, 'd', now, 'l', to.life)
  if f.w then redis.call('HSET', task.key, 'w', f.w) end
  if f.ci then redis.call('HSET', task.key, 'ci', f.ci) end
  if held_by(task) then redis.call('ZADD', HELD, 0, held_entry(task)) end
  if f.x then redis.call('ZADD', DUE, f.x, 'd:' .. task.name) end
  redis.call('ZADD', TIMERS, L + to.start, 's:' .. member_of(task))
  emit(task, 'task.dispatched')
end
