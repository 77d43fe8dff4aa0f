-- Purpose: what an idempotency key identifies: h hash of the body, id and f the task's id and fence, tp its traceparent; and, once
--   the task exists, c when it was created and w the worker that was chosen for it.

-- Returns {1 if the body is the same, else 0, task id, fence, created wall ms or '', worker or '', traceparent or ''}, or nil if
-- the key is not known.
local function known_key(key, hash)
  local r = redis.call('HMGET', key, 'h', 'id', 'f', 'c', 'w', 'tp')
  if not r[1] then return nil end
  if r[1] ~= hash then return {0, r[2], r[3], '', '', ''} end
  return {1, r[2], r[3], r[4] or '', r[5] or '', r[6] or ''}
end

local function reserve_key(key, life, trace, ...)
  if trace ~= '' then
    redis.call('HSET', key, 'tp', trace, ...)
  else
    redis.call('HSET', key, ...)
  end
  redis.call('PEXPIRE', key, life)
end
