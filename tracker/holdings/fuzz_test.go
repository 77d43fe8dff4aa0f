package holdings

import (
	"testing"

	"github.com/lubdub-io/lubdub/internal/storedtest"
)

// Whatever stands in the store, reading it ends in a value or a refusal.
func FuzzStored(f *testing.F) {
	storedtest.Read(f, func(t *testing.T, text string) {
		ParseHeld(text, 0)
		parseNotice(text)
	})
}
