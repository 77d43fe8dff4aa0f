-- Purpose: puts a report over the one before it. Packed: reported ms TAB worker TAB pct TAB message; a part that
-- the new one leaves empty keeps its old value.
local function merge_report(old, new)
  if not old or old == '' then return new end
  local PARTS = '^([^\t]*)\t([^\t]*)\t([^\t]*)\t(.*)$'
  local a1, a2, a3, a4 = string.match(old, PARTS)
  local b1, b2, b3, b4 = string.match(new, PARTS)
  if not a1 then return new end
  local function pick(a, b) return b ~= '' and b or a end
  return table.concat({pick(a1, b1), pick(a2, b2), pick(a3, b3), pick(a4, b4)}, '\t')
end
