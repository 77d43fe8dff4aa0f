-- Purpose: lists schedules by id, and counts them, in the indexes of some shards.
-- Guarantees: writes nothing.
-- KEYS: lubdub:{shard}:schedules of each shard. On Cluster a call covers one shard only.
-- ARGV: 1 prefix: <scope>/ or <tenant>/, 2 rest of the entry after which to begin, or '', 3 limit of each shard, 4 desc for
--   the reverse order, else ''
-- Reply: for each shard {entries without the prefix}, their total number
-- Cost: O(log n + limit) for each shard
local prefix, limit = ARGV[1], tonumber(ARGV[3])
local reply = {}
for _, key in ipairs(KEYS) do
  local names = {}
  if limit > 0 then
    if ARGV[4] == 'desc' then
      local from = ARGV[2] == '' and '\255' or ARGV[2]
      names = redis.call('ZREVRANGEBYLEX', key, '(' .. prefix .. from, '(' .. prefix, 'LIMIT', 0, limit)
    else
      names = redis.call('ZRANGEBYLEX', key, '(' .. prefix .. ARGV[2], '(' .. prefix .. '\255', 'LIMIT', 0, limit)
    end
  end
  for i, name in ipairs(names) do names[i] = string.sub(name, #prefix + 1) end
  reply[#reply + 1] = names
  reply[#reply + 1] = redis.call('ZLEXCOUNT', key, '(' .. prefix, '(' .. prefix .. '\255')
end
return reply
