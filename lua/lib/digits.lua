-- Purpose: integers as they are stored. Redis and Lua print a number anew each time that it becomes a string, which
-- costs as much as a small command. Needs clock.
local printed = {}
local function digits(n)
  local text = printed[n]
  if not text then
    text = string.format('%d', n) -- three times as fast as %.0f
    printed[n] = text
  end
  return text
end

local NOW = digits(now)
