-- Purpose: finds an ended attempt in a task's history, which holds them in the order of their numbers.
local LONGEST_HISTORY = 100

-- Returns the entry, or nil. It stands as far from the end as its number is from the current one's unless the store
-- lost some, so the first look is there; the others halve what is left. `current`: number of the task's attempt;
-- `state`: that of the task, whose live attempt has no entry.
local function entry_of(history, attempt, current, state)
  local newest, oldest = 1, LONGEST_HISTORY -- counted from the end
  local live = (state == 'D' or state == 'R') and 1 or 0
  local at = current - live - attempt + 1
  while newest <= oldest do
    at = math.max(newest, math.min(at, oldest))
    local entry = redis.call('LINDEX', history, -at)
    local number = entry and tonumber(string.match(entry, '^%d+')) or 0 -- 0: there are not so many
    if number == attempt then return entry end
    if number < attempt then oldest = at - 1 else newest = at + 1 end
    at = math.floor((newest + oldest) / 2)
  end
end
