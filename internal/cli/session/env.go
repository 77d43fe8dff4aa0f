package session

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Env is the environment of a command; tests replace it.
type Env struct {
	Context        context.Context // ends when the command is interrupted
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string
	// CheckRedis checks a Redis as a server with these settings would use it. Without a URL it is the one in the settings.
	CheckRedis func(ctx context.Context, url, configFile string) ([]v1.Finding, error)
}

// Getenv returns a variable; the last one wins.
func (e *Env) Getenv(name string) (value string) {
	for _, pair := range e.Environ {
		if n, v, _ := strings.Cut(pair, "="); n == name {
			value = v
		}
	}
	return value
}

// Input returns standard input; a read ends when the command is interrupted, since the input may never come.
func (e *Env) Input() io.Reader { return interruptible{e.Context, e.Stdin} }

type interruptible struct {
	ctx context.Context
	in  io.Reader
}

func (i interruptible) Read(p []byte) (int, error) {
	type read struct {
		n   int
		err error
	}
	own, done := make([]byte, len(p)), make(chan read, 1) // the caller may reuse p when this read was interrupted
	go func() {
		n, err := i.in.Read(own)
		done <- read{n, err}
	}()
	select {
	case r := <-done:
		return copy(p, own[:r.n]), r.err
	case <-i.ctx.Done():
		return 0, errors.New("interrupted; nothing was done")
	}
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Colourful reports whether standard output may have colours.
func (e *Env) Colourful() bool {
	return e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb" && IsTerminal(e.Stdout)
}
