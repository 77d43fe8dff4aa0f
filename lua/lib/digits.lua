-- Purpose: integers in their stored form. Redis and Lua format a number each time it becomes a string, which costs as much as
--   a small command. Needs clock.
local printed = {}
local function digits(n)
  local text = printed[-n] -- negative, since the Lua of miniredis would make an array of n elements
  if not text then
    text = string.format('%d', n) -- three times as fast as %.0f
    printed[-n] = text
  end
  return text
end

local NOW = digits(now)
