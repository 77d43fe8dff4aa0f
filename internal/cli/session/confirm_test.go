package session

import (
	"io"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
)

// Without a yes nothing is done.
func TestAYesIsAYes(t *testing.T) {
	pipe := &Session{Env: &Env{Context: t.Context(), Stdin: strings.NewReader("y\n"), Stderr: io.Discard}}
	if err := pipe.Confirm(ActFlags{}, "end it"); exit.Code(err) != exit.Misuse {
		t.Errorf("a prompt without a terminal: %v", err)
	}
	if err := (&Session{}).Confirm(ActFlags{Yes: true}, "end it"); err != nil {
		t.Error(err)
	}
}
