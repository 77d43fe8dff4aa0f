package lua

import (
	"strings"
	"testing"
	"testing/fstest"
)

// A function that only one other function uses is created only when that one runs; constants need no variable.
func TestFewFunctionsAreAtTheTopLevel(t *testing.T) {
	const lib = `local MOST, NAME = 13, 'NAME'
local own = {}
local function deepest(n) return n + MOST end
local function deep(n)
  return deepest(n) + deepest(n)
end
local function shared(n) return n end
local function hidden(n) return n + #own end
local function hides(own)
  return hidden(own)
end
local function each(n) return n end
local function in_loop(n)
  return each(n)
end
local function outer(n)
  if n > MOST then return deep(n) end -- MOST in a comment
  return shared(n)
end
`
	folder := fstest.MapFS{
		"lib/lib.lua": {Data: []byte(lib)},
		"room/s.lua": {Data: []byte("--#include lib/lib.lua\nfor i = 1, 2 do\n  in_loop(i)\nend\n" +
			"return {outer(1), shared(2), hides(own), NAME .. 'NAME'}\n")},
	}
	const want = `local own = {}
local function shared(n) return n end
local function hidden(n) return n + #own end
local function hides(own)
  return hidden(own)
end
local function each(n) return n end
local function in_loop(n)
  return each(n)
end
local function outer(n)
  local function deep(n)
    local function deepest(n) return n + 13 end
    return deepest(n) + deepest(n)
  end
  if n > 13 then return deep(n) end -- MOST in a comment
  return shared(n)
end
for i = 1, 2 do
  in_loop(i)
end
return {outer(1), shared(2), hides(own), 'NAME' .. 'NAME'}
`
	if got := LoadWithClockFrom(folder, "").Get("s").Source; got != want {
		t.Errorf("composed:\n%s\nwant:\n%s", got, want)
	}
}

// What For replaces is in the scripts.
func TestConstantsThatDeploymentsReplaceStay(t *testing.T) {
	const want = "EVENTS_MOST = '80000'"
	if src := Load().For(Deployment{EventsPerShard: 20000}).Get("create").Source; !strings.Contains(src, want) {
		t.Errorf("create has no %s:\n%s", want, src)
	}
}
