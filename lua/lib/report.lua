-- Purpose: a report of an attempt: reported ms, worker, percent and message as JSON, TAB-separated, each empty if it was not
--   reported.
local function pack_report(at, worker, pct, message) return at .. '\t' .. worker .. '\t' .. pct .. '\t' .. message end

-- Returns its parts; nothing if there is none.
local function unpack_report(report) return string.match(report, '^([^\t]*)\t([^\t]*)\t([^\t]*)\t(.*)$') end

-- Merges a report into the previous one; a part that the new one leaves empty keeps its old value.
local function merge_report(old, new)
  if not old or old == '' then return new end
  local a1, a2, a3, a4 = unpack_report(old)
  local b1, b2, b3, b4 = unpack_report(new)
  if not a1 then return new end
  local function pick(a, b) return b ~= '' and b or a end
  return pack_report(pick(a1, b1), pick(a2, b2), pick(a3, b3), pick(a4, b4))
end
