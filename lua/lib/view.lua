-- Purpose: everything about one task as it is at this moment. Needs clock, shard, task and settle.

-- Returns {wall ms, {record fields}, {document fields}, {history}, packed report or '', silent ms or '', outage credit
-- ms since the last beat}; the record has no fields when there is no such task.
local function view(task)
  if not task.f then return {now, {}, {}, {}, '', '', 0} end
  local member = member_of(task)
  local score = beat_of(task, tonumber(redis.call('ZSCORE', task.beats, member)))
  local silent, credit = '', 0
  if score then
    silent, credit = string.format('%.0f', shard_time(CLOCK) - score), outage_credit(score)
  end
  return {now, redis.call('HGETALL', task.key), redis.call('HGETALL', task.doc),
    redis.call('LRANGE', task.history, 0, -1), redis.call('HGET', PROGRESS, member) or '', silent, credit}
end
