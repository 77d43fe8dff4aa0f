-- Purpose: lists names by state, in order or in reverse, and counts them, in the indexes of some shards. A name is an id, or
--   in the index of ends <ended wall ms>/<id>.
-- Guarantees: writes nothing; one moment for all states, so a task that moves between two states is seen once.
-- KEYS: lubdub:{shard}:ix, …:workers or …:run:<scope>/<run> of each shard. On Cluster a call covers one shard only.
-- ARGV: 1 prefix before the state ('<scope>/', '|<scope>/' for ends, or ''), 2 states to list, a letter each, 3 name after
--   which to begin, or '', 4 limit for each state of each shard, 5 states to count, a letter each, 6 1 for the reverse
--   order, else '', 7 name before which to end, or ''
-- Reply: for each shard {names of the first state}, …, {counts}
-- Cost: O(log n + limit) for each state
local prefix, limit, after, reverse, before = ARGV[1], tonumber(ARGV[4]), ARGV[3], ARGV[6] == '1', ARGV[7]
local skip = #prefix + 3 -- length of what precedes a name

local function ranges(states, after, before)
  local low, high, r = reverse and before or after, reverse and after or before, {}
  for s in string.gmatch(states, '.') do
    local of = '(' .. prefix .. s
    r[#r + 1] = {state = s, from = of .. '/' .. low, to = high == '' and of .. '0' or of .. '/' .. high}
  end
  return r
end

local function page(key, r)
  if reverse then return redis.call('ZREVRANGEBYLEX', key, r.to, r.from, 'LIMIT', 0, limit) end
  return redis.call('ZRANGEBYLEX', key, r.from, r.to, 'LIMIT', 0, limit)
end

local listed, counted, reply = ranges(ARGV[2], after, before), ranges(ARGV[5], '', ''), {}
for _, key in ipairs(KEYS) do
  local whole, counts = {}, {} -- whole: the size of each state that was listed to its end
  for _, r in ipairs(listed) do
    local names = page(key, r)
    for i, entry in ipairs(names) do names[i] = string.sub(entry, skip) end
    if after == '' and before == '' and #names < limit then whole[r.state] = #names end
    reply[#reply + 1] = names
  end
  for i, r in ipairs(counted) do
    counts[i] = whole[r.state] or redis.call('ZLEXCOUNT', key, r.from, r.to)
  end
  reply[#reply + 1] = counts
end
return reply
