-- Purpose: records the levels of a step of time: how many tasks, workers and machines there were, and what was overdue.
-- Guarantees: only the first call for a step counts; a step without reports is left unchanged.
-- KEYS: 1 lubdub:{0}:step:<step>
-- ARGV: levels as name and number
-- Reply: 1 if they are recorded, else 0
-- Cost: O(levels)
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HSETNX', KEYS[1], 'told', 1) == 0 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1
