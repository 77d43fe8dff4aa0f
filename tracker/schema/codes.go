package schema

import (
	"github.com/lubdub-io/lubdub/tracker/model"
)

// What scripts about one task answer; lua/lib/codes.lua says the same and a test compares the two.
const (
	CodeOK int64 = iota
	CodeMismatch
	CodeEnded
	CodeTerminal
	CodeNotFound
	CodeExists
	CodeRepeated
	CodeRefused
)

// What scripts about a worker answer besides; lua/lib/workercodes.lua says the same.
const (
	CodeOffline  int64 = 20
	CodeDraining int64 = 21
)

// Results of the scripts that take what is due.
const (
	TookNothing int64 = iota
	TookFailed
	TookRequeued
	TookReady
	TookRemoved
	TookPlaceless
	TookNeedsRun
	TookExhausted // failed, as its retries are used up
)

// StateOf reads a state as it is stored: by its first letter; "" when there is none such.
func StateOf(letter string) model.State {
	for _, s := range model.States {
		if letter == string(s[0]) {
			return s
		}
	}
	return ""
}

// Letters writes states as they are stored, one letter each.
func Letters(states ...model.State) string {
	b := make([]byte, len(states))
	for i, s := range states {
		b[i] = s[0]
	}
	return string(b)
}
