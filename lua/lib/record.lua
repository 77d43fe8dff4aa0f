-- Purpose: the record of a task as scripts have it, by the names that lib/task.lua tells.

-- Reads the record at a task's key: its fields, and as Redis tells them, name and value in turns; nil when there is none.
local function fields_at(key)
  local raw = redis.call('HGETALL', key)
  if #raw == 0 then return nil end
  -- Most records have so many fields: a table that grows with each of them takes twice as long.
  local f = {s = nil, a = nil, f = nil, c = nil, t = nil, i = nil, d = nil, b = nil, q = nil}
  for i = 1, #raw, 2 do f[raw[i]] = raw[i + 1] end
  f.a = tonumber(f.a) or 0
  return f, raw
end

-- The last beat that a score stands for, in shard time: it is not the score itself while the brake spares the attempt.
local function beat_of(task, score)
  local f = task.f
  return score and score == tonumber(f.bh) and tonumber(f.bb) or score
end

-- Reports whether the task has ended so that it never has a next attempt (next_attempt.lua).
local function is_final(f) return f.s == 'S' or f.s == 'C' or f.s == 'F' and f.r == 'DEADLINE_EXCEEDED' end
