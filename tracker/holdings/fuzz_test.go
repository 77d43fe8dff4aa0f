package holdings

import (
	"testing"

	"github.com/lubdub-io/lubdub/internal/storedtest"
)

// Reading any stored bytes ends in a value or an error.
func FuzzStored(f *testing.F) {
	storedtest.Read(f, func(t *testing.T, text string) {
		ParseHeld(text, 0)
		parseNotice(text)
	})
}
