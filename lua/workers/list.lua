-- Purpose: lists ids by state, in the order of ids, and counts them, in the indexes of some shards.
-- Guarantees: writes nothing; one moment for all states, so a task that moves between two states is seen once.
-- KEYS: lubdub:{shard}:ix, …:workers or …:run:<scope>/<run> of each shard. On Cluster a call is about one shard only.
-- ARGV: 1 prefix before the state ('<scope>/' or ''), 2 states to list, a letter each, 3 id after which to begin, or
--   '', 4 limit for each state of each shard, 5 states to count, a letter each
-- Reply: for each shard {ids of the first state}, …, {counts}
-- Cost: O(log n + limit) for each state
local prefix, limit, from_start = ARGV[1], tonumber(ARGV[4]), ARGV[3] == ''
local skip = #prefix + 3 -- what stands before an id

local function ranges(states, after)
  local r = {}
  for s in string.gmatch(states, '.') do
    r[#r + 1] = {state = s, from = '(' .. prefix .. s .. '/' .. after, to = '(' .. prefix .. s .. '0'}
  end
  return r
end

local listed, counted, reply = ranges(ARGV[2], ARGV[3]), ranges(ARGV[5], ''), {}
for _, key in ipairs(KEYS) do
  local whole, counts = {}, {} -- whole: how many each state has that was listed to its end
  for _, r in ipairs(listed) do
    local ids = redis.call('ZRANGEBYLEX', key, r.from, r.to, 'LIMIT', 0, limit)
    for i, entry in ipairs(ids) do ids[i] = string.sub(entry, skip) end
    if from_start and #ids < limit then whole[r.state] = #ids end
    reply[#reply + 1] = ids
  end
  for i, r in ipairs(counted) do
    counts[i] = whole[r.state] or redis.call('ZLEXCOUNT', key, r.from, r.to)
  end
  reply[#reply + 1] = counts
end
return reply
