-- Purpose: reads which labels tasks require of their workers.
-- Guarantees: writes nothing.
-- KEYS: lubdub:{shard}:doc:<scope>/<id> of each task
-- ARGV: none
-- Reply: for each its worker labels as JSON, or '' for none and for a task that is gone
-- Cost: O(tasks), and the size of the labels
local reply = {}
for i, key in ipairs(KEYS) do reply[i] = redis.call('HGET', key, 'workerLabels') or '' end
return reply
