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
local function once(n) return n end
local function without_parameters()
  return once(1)
end
local function outer(n)
  if n > MOST then return deep(n) end -- MOST in a comment
  return shared(n)
end
`
	folder := fstest.MapFS{
		"lib/lib.lua": {Data: []byte(lib)},
		"room/s.lua": {Data: []byte("--#include lib/lib.lua\nfor i = 1, 2 do\n  in_loop(i)\nend\n" +
			"return {outer(1), shared(2), hides(own), without_parameters(), NAME .. 'NAME'}\n")},
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
local function without_parameters()
  local function once(n) return n end
  return once(1)
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
return {outer(1), shared(2), hides(own), without_parameters(), 'NAME' .. 'NAME'}
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

// A function stays where it is if a parameter of its only user has the name of a variable that it uses; it moves if that is the name of a
// field, a word in a string, or a parameter that it or a function in it declares.
func TestAParameterHidesNoVariable(t *testing.T) {
	const lib = `local function sortable(ms) return type(ms) == 'string' and 'mode' or ms.mode end
local function of_mode(mode) return sortable(mode) end
local function by_type(type)
  return of_mode(type)
end
local function own(type) return type + 1 end
local function outer(n)
  return own(n)
end
local function around(type)
  return outer(type)
end
`
	folder := fstest.MapFS{"lib/lib.lua": {Data: []byte(lib)},
		"room/s.lua": {Data: []byte("--#include lib/lib.lua\nreturn by_type(1) + around(1)\n")}}
	const want = `local function sortable(ms) return type(ms) == 'string' and 'mode' or ms.mode end
local function by_type(type)
  local function of_mode(mode) return sortable(mode) end
  return of_mode(type)
end
local function around(type)
  local function outer(n)
    local function own(type) return type + 1 end
    return own(n)
  end
  return outer(type)
end
return by_type(1) + around(1)
`
	if got := LoadWithClockFrom(folder, "").Get("s").Source; got != want {
		t.Errorf("composed:\n%s\nwant:\n%s", got, want)
	}
}

// A fragment is inserted once, and a name that a script and its fragments declare twice is refused: a function that moves from between the
// two would mean the other one.
func TestEachNameIsDeclaredOnce(t *testing.T) {
	folder := fstest.MapFS{"lib/a.lua": {Data: []byte("local a = {}\n")}, "lib/b.lua": {Data: []byte("--#include lib/a.lua\nlocal b = a\n")},
		"room/s.lua": {Data: []byte("--#include lib/a.lua\n--#include lib/b.lua\nreturn b\n")}}
	if got := LoadWithClockFrom(folder, "").Get("s").Source; got != "local a = {}\nlocal b = a\nreturn b\n" {
		t.Errorf("composed:\n%s", got)
	}
	folder["room/s.lua"].Data = []byte("--#include lib/b.lua\nlocal a = 2\nreturn a\n")
	defer func() {
		if said := recover(); said == nil || !strings.Contains(said.(string), "room/s.lua declares a twice") {
			t.Errorf("it panics with %v", said)
		}
	}()
	LoadWithClockFrom(folder, "")
}
