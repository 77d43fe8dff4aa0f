package why

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Explanation is everything known about one object.
type Explanation struct {
	Sentences []string
	parts     map[string]json.RawMessage
}

func (a *Explanation) addf(format string, args ...any) {
	a.Sentences = append(a.Sentences, output.Clean(fmt.Sprintf(format, args...)))
}

func (a *Explanation) show(s *session.Session) error {
	if s.Format.ForPeople() {
		_, err := fmt.Fprintln(s.W, strings.Join(a.Sentences, "\n"))
		return err
	}
	answer := map[string]any{"sentences": a.Sentences}
	for name, raw := range a.parts {
		answer[name] = raw
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return s.Raw(raw)
}

// timeAndAge writes a time and how long ago it was.
func timeAndAge(s *session.Session, t v1.Time) string {
	if t.IsZero() {
		return "never"
	}
	return session.FormatTime(t) + " (" + output.Age(t.Time, s.Now()).Text + " ago)"
}

// unreadable reports whether an object that belongs to the explanation could not be read, and explains why: this token's role may not
// read it, or it is not stored, which the sentence explains.
func (a *Explanation) unreadable(err error, what, notStored string) bool {
	switch exit.Code(err) {
	case exit.NotAllowed:
		a.addf("This token's role may not read %s; one with the role viewer may.", what)
	case exit.NotFound:
		a.addf("%s", notStored)
	default:
		return false
	}
	return true
}

// missing reports whether an object does not exist, or is not visible with this token.
func missing(err error) bool {
	code := exit.Code(err)
	return code == exit.NotFound || code == exit.NotAllowed
}

// because returns the text of a reason, or "" if it is the same as another.
func because(reason, other *string) string {
	if reason == nil || *reason == "" || other != nil && *other == *reason {
		return ""
	}
	return ` ("` + *reason + `")`
}
