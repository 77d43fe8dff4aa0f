package lua

import (
	"strings"
	"testing"
	"testing/fstest"
)

// A script has the functions of its fragments that it calls, those that these call, and no others.
func TestWhatAScriptDoesNotCallIsLeftOut(t *testing.T) {
	const lib = `-- Purpose: unused is mentioned here.
local function used(n) return n + 1 end
local function unused(n) return n + 1 end -- in one line
-- Recurses.
local function alone(n)
  if n > 0 then
    return alone(n - 1)
  end
end
local function by_unused()
  return 1
end
local function only_calls() return by_unused() end
local kept = {1, 2}
local function whole(n) if n then return end
  return used(n)
end
`
	folder := fstest.MapFS{
		"lib/lib.lua":    {Data: []byte(lib)},
		"room/small.lua": {Data: []byte("--#include lib/lib.lua\nreturn whole(kept)\n")},
		"room/none.lua":  {Data: []byte("--#include lib/lib.lua\nreturn 1\n")},
	}
	set := LoadWithClockFrom(folder, "")
	want := `-- Purpose: unused is mentioned here.
local function used(n) return n + 1 end
-- Recurses.
local kept = {1, 2}
local function whole(n) if n then return end
  return used(n)
end
return whole(kept)
`
	if got := set.Get("small").Source; got != want {
		t.Errorf("composed:\n%s\nwant:\n%s", got, want)
	}
	if got := set.Get("none").Source; strings.Contains(got, "function") {
		t.Errorf("composed:\n%s", got)
	}
}

// The scripts that Redis runs most have no more functions than they use.
func TestScriptsMakeFewFunctions(t *testing.T) {
	set := Load()
	for _, name := range set.Names() {
		var lines []line
		for text := range strings.Lines(set.Get(name).Source) {
			lines = append(lines, parseLine(text))
		}
		parts := partsOf(lines)
		for _, f := range parts {
			if f.name != "" && usesIn(parts)[f.name] < 2 {
				t.Errorf("%s makes %s and never calls it", name, f.name)
			}
		}
	}
}
