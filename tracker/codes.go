package tracker

// What scripts about one task answer; lua/lib/codes.lua says the same and a test compares the two.
const (
	codeOK int64 = iota
	codeMismatch
	codeEnded
	codeTerminal
	codeNotFound
	codeExists
	codeRepeated
	codeRefused
)

// Results of the scripts that take what is due.
const (
	tookNothing int64 = iota
	tookFailed
	tookRequeued
	tookReady
	tookRemoved
	tookPlaceless
	tookNeedsRun
)

// States as they are stored: the first letter.
func stateOf(letter string) State {
	for _, s := range States {
		if letter == string(s[0]) {
			return s
		}
	}
	return ""
}

func letters(states ...State) string {
	b := make([]byte, len(states))
	for i, s := range states {
		b[i] = s[0]
	}
	return string(b)
}
