package session

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/output"
)

// ReasonFlags is the flag of acts that take a reason.
type ReasonFlags struct {
	Reason string `placeholder:"TEXT" help:"Why; events show it."`
}

// ActFlags are the flags of every act.
type ActFlags struct {
	Yes    bool `short:"y" help:"Act on many without a prompt."`
	DryRun bool `help:"Only count what would be changed."`
}

// Confirm asks for confirmation of an act on many, unless --yes was passed.
func (s *Session) Confirm(a ActFlags, what string) error {
	if a.Yes {
		return nil
	}
	if !IsTerminal(s.Env.Stdin) {
		return exit.Misusef("this would %s; pass --yes to run without a prompt", what)
	}
	fmt.Fprintf(s.Env.Stderr, "%s? [y/N] ", strings.ToUpper(what[:1])+what[1:])
	answers := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(s.Env.Stdin).ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case answer := <-answers:
		if answer == "y" || answer == "yes" {
			return nil
		}
	case <-s.Env.Context.Done():
	}
	return errors.New("nothing was done")
}

// ShowResult shows what an act did: a sentence for people, the API's answer for programs.
func (s *Session) ShowResult(raw json.RawMessage, format string, args ...any) error {
	if s.Format.ForPeople() {
		_, err := fmt.Fprintf(s.W, format+"\n", args...)
		return err
	}
	return s.ShowAnswer(raw)
}

// ShowAnswer shows programs the API's answer.
func (s *Session) ShowAnswer(raw json.RawMessage) error {
	if s.Format.ForPeople() || s.Format == output.Name {
		return nil
	}
	return s.Raw(raw)
}
