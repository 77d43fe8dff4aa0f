-- Purpose: for scripts that take many tasks in one call: writes of the fragments to keys that these tasks share are collected,
--   and write_all executes them with one command for each key. A script must not add what it has removed from a key, nor read
--   what it has written there. Needs shard.
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
  if b then args[n + 2] = b end -- storing a nil costs as much as everything else
  if c then args[n + 3], args[n + 4] = c, d end
end

local function write_all()
  for _, args in ipairs(in_order) do redis.call(unpack(args)) end
end
