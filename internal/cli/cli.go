// Package cli holds the commands by which operators look at a deployment and act on it. All of them go through the public API, with
// the Go SDK's client: nothing here works out by itself what state anything is in.
package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Has reports whether a command is one of these.
func Has(command *kong.Node) bool {
	if command == nil {
		return false
	}
	switch command.Target.Addr().Interface().(type) {
	case interface{ Run(*Env) error }, interface {
		Run(*Env, *kong.Context) error
	}:
		return true
	}
	return false
}

// EmptyFlags refuses flags that were given without a value, as by a variable that is not set: left out, they would choose more.
func EmptyFlags(k *kong.Context) error {
	for _, p := range k.Path {
		if p.Flag != nil && p.Flag.Tag.Type == "" && p.Flag.Target.Kind() == reflect.String && p.Flag.Target.Len() == 0 {
			return misusef("--%s is empty; give it a value, or leave it out", p.Flag.Name)
		}
	}
	return nil
}

// Env is what a command sees of the outside world.
type Env struct {
	Context        context.Context // ends when the command is interrupted
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string
	// CheckRedis looks at a Redis itself, as a server with these settings would use it. Without a URL it is that of the settings.
	CheckRedis func(ctx context.Context, url, configFile string) ([]v1.Finding, error)
}

// Getenv finds a variable; the last one wins.
func (e *Env) Getenv(name string) (value string) {
	for _, pair := range e.Environ {
		if n, v, _ := strings.Cut(pair, "="); n == name {
			value = v
		}
	}
	return value
}

// input is standard input, of which a read ends when the command is interrupted: what is typed may never come.
func (e *Env) input() io.Reader { return interruptible{e.Context, e.Stdin} }

type interruptible struct {
	ctx context.Context
	in  io.Reader
}

func (i interruptible) Read(p []byte) (int, error) {
	type read struct {
		n   int
		err error
	}
	own, came := make([]byte, len(p)), make(chan read, 1) // p is the caller's again when nobody waits any more
	go func() {
		n, err := i.in.Read(own)
		came <- read{n, err}
	}()
	select {
	case r := <-came:
		return copy(p, own[:r.n]), r.err
	case <-i.ctx.Done():
		return 0, errors.New("interrupted; nothing was done")
	}
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// colourful reports whether what is written to standard output may have colours.
func (e *Env) colourful() bool {
	return e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb" && isTerminal(e.Stdout)
}

// Complete prints how the line of a shell that asks may continue; false: no shell asks.
func Complete(env *Env, parser *kong.Kong) bool { return completeLine(env, parser, idLists) }
