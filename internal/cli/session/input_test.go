package session

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func TestStandardInputIsReadWhole(t *testing.T) {
	env := &Env{Context: t.Context(), Stdin: strings.NewReader(strings.Repeat("x", 10_000))}
	if got, err := io.ReadAll(env.Input()); err != nil || !bytes.Equal(got, bytes.Repeat([]byte("x"), 10_000)) {
		t.Errorf("%d bytes: %v", len(got), err)
	}
}
