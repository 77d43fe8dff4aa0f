-- Purpose: reads everything about one task at one moment.
-- Guarantees: writes nothing.
-- KEYS: 1–12 the shard's fixed keys (lib/shard.lua), 13 lubdub:{shard}:task:<scope>/<id>, 14 …:doc:<scope>/<id>,
--   15 …:history:<scope>/<id>, 16 …:run:<scope>/<run>, 17 …:beats:<timeoutMs>
-- ARGV: 1 scope, 2 id
-- Reply: {wall ms, {record fields}, {document fields}, {history}, packed report or '', silent ms or '', outage credit
--   ms since the last beat}
-- Cost: O(size of the task)
--#include lib/clock.lua
--#include lib/shard.lua
--#include lib/task.lua
--#include lib/settle.lua
local record = redis.call('HGETALL', KEYS[TASKS])
local task = open_task(TASKS, ARGV[1], ARGV[2])
if not task.f then return {now, record, {}, {}, '', '', 0} end
local member = member_of(task)
local score = beat_of(task, tonumber(redis.call('ZSCORE', task.beats, member)))
local silent, credit = '', 0
if score then
  silent, credit = string.format('%.0f', shard_time(CLOCK) - score), outage_credit(score)
end
return {now, record, redis.call('HGETALL', task.doc), redis.call('LRANGE', task.history, 0, -1),
  redis.call('HGET', PROGRESS, member) or '', silent, credit}
