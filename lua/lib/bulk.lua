-- Purpose: for scripts that take many tasks in one call: what the fragments write to keys that these tasks share is
-- collected and done by write_all, one command for each key. A script may then not add what it has removed from a key,
-- nor read what it has written there. Needs shard.
local collected, in_order = {}, {}

write = function(command, key, a, b, c, d)
  local of_key = collected[key]
  if not of_key then
    of_key = {}
    collected[key] = of_key
  end
  local args = of_key[command]
  if not args then
    args = {command, key}
    of_key[command] = args
    in_order[#in_order + 1] = args
  end
  local n = #args
  args[n + 1] = a
  if b then args[n + 2] = b end -- to store a nil costs as much as all the rest
  if c then args[n + 3], args[n + 4] = c, d end
end

local function write_all()
  for _, args in ipairs(in_order) do redis.call(unpack(args)) end
end
