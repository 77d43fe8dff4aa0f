package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/lubdub-io/lubdub/internal/cli/output"
)

// Explained is the flag of acts that take a reason.
type Explained struct {
	Reason string `placeholder:"TEXT" help:"Why; events, workers and lists show it."`
}

// Acting are the flags of every act.
type Acting struct {
	Yes    bool `short:"y" help:"Act on many without a prompt."`
	DryRun bool `help:"Only count what would be changed."`
}

// agreed asks for confirmation of an act on many, unless --yes was passed.
func (s *session) agreed(a Acting, what string) error {
	if a.Yes {
		return nil
	}
	if !isTerminal(s.env.Stdin) {
		return misusef("this would %s; pass --yes to run without a prompt", what)
	}
	fmt.Fprintf(s.env.Stderr, "%s? [y/N] ", strings.ToUpper(what[:1])+what[1:])
	answered := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(s.env.Stdin).ReadString('\n')
		answered <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case answer := <-answered:
		if answer == "y" || answer == "yes" {
			return nil
		}
	case <-s.env.Context.Done():
	}
	return errors.New("nothing was done")
}

// counted shows what an act on many did: a sentence for people, the API's answer for programs.
func (s *session) counted(raw json.RawMessage, format string, args ...any) error {
	if s.Format.ForPeople() {
		_, err := fmt.Fprintf(s.W, format+"\n", args...)
		return err
	}
	if s.Format == output.Name {
		return nil
	}
	return s.Raw(raw)
}

// onEach acts on each of the ids that were named. It goes on after a refusal, and the first error is that of the command.
func onEach[T any](s *session, k *kind[T], ids []string, act func(ctx context.Context, id string) (json.RawMessage, *T, error)) error {
	rows, failed := k.rows(s), error(nil)
	for _, id := range ids {
		raw, done, err := act(s.env.Context, id)
		if err != nil {
			err = k.nearest(s.env.Context, s, id, err)
			if len(ids) == 1 || s.env.Context.Err() != nil {
				return err
			}
			s.note("lubdub: %s: %v", id, err)
			if failed == nil {
				failed = reported(err)
			}
			continue
		}
		if err := k.showMore(s, rows, entry[T]{raw: raw, T: done}); err != nil {
			return err
		}
	}
	return failed
}
