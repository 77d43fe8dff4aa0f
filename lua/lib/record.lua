-- Purpose: the record of a task in scripts, with the field names of lib/task.lua.

-- Reads the record at a task's key: its fields, and the reply of Redis, alternating names and values; nil if there is none.
local function fields_at(key)
  local raw = redis.call('HGETALL', key)
  if #raw == 0 then return nil end
  -- Most records have these fields: a table that grows with each of them takes twice as long.
  local f = {s = nil, a = nil, f = nil, c = nil, t = nil, i = nil, d = nil, b = nil, q = nil}
  for i = 1, #raw, 2 do f[raw[i]] = raw[i + 1] end
  f.a = tonumber(f.a) or 0
  return f, raw
end

-- The last heartbeat for a score, in shard time: it differs from the score while the brake holds the attempt.
local function beat_of(task, score)
  local f = task.f
  return score and score == tonumber(f.bh) and tonumber(f.bb) or score
end

-- Reports whether the task has ended so that it never has a next attempt (next_attempt.lua).
local function is_final(f) return f.s == 'S' or f.s == 'C' or f.s == 'F' and f.r == 'DEADLINE_EXCEEDED' end
