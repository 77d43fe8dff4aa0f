package cli

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"
)

// Whoever is asked for what never comes gets away with one Ctrl-C.
func TestReadingStandardInputEndsWithTheCommand(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	silent, keyboard := io.Pipe()
	t.Cleanup(func() { _ = keyboard.Close() })
	dash, server := "-", "http://127.0.0.1:1"
	create := &taskCreate{File: dash}
	create.Server, create.Timeout = server, time.Second
	for name, cmd := range map[string]interface{ Run(*Env) error }{
		"context set": &contextSet{Name: "c", Server: &server, Token: &dash}, "token inspect": &TokenInspect{Stdin: true}, "task create": create,
	} {
		ended := make(chan error, 1)
		env := &Env{Context: ctx, Stdin: silent, Stdout: io.Discard, Stderr: io.Discard, Environ: []string{"XDG_CONFIG_HOME=" + t.TempDir()}}
		go func() { ended <- cmd.Run(env) }()
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), "interrupted") {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s waits on", name)
		}
	}
}

func TestStandardInputIsReadWhole(t *testing.T) {
	env := &Env{Context: t.Context(), Stdin: strings.NewReader(strings.Repeat("x", 10_000))}
	if got, err := io.ReadAll(env.input()); err != nil || !bytes.Equal(got, bytes.Repeat([]byte("x"), 10_000)) {
		t.Errorf("%d bytes: %v", len(got), err)
	}
}
