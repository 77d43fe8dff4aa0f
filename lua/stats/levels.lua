-- Purpose: notes what there was in a step of time: how many tasks, workers and machines, and what was overdue.
-- Guarantees: the first one to say so is heard; a step that nobody reported to is left alone.
-- KEYS: 1 lubdub:{0}:step:<step>
-- ARGV: levels as name and number
-- Reply: 1 when they are noted, else 0
-- Cost: O(levels)
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HSETNX', KEYS[1], 'told', 1) == 0 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1
