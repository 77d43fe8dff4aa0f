package config

import (
	"fmt"
	"io"
	"strings"

	"github.com/goccy/go-yaml"
)

// Print writes the effective configuration as YAML, each value with its source. A value that contains a secret is written as a comment
// with the secret hidden, so that the output can be used as a file and never sets a password to the placeholder.
func (l *Loaded) Print(w io.Writer) error {
	group := ""
	for _, f := range Fields() {
		if f.Group != group {
			if group != "" {
				fmt.Fprintln(w)
			}
			group = f.Group
			fmt.Fprintf(w, "# %s\n", group)
		}
		text, secret := f.Redacted(&l.Config)
		value, err := quote(f, text)
		if err != nil {
			return err
		}
		line := fmt.Sprintf("%s: %s", f.Name, value)
		note := l.Source(f.Name).String()
		switch {
		case secret:
			line, note = "# "+line, note+", hidden"
		case f.EnvOnly:
			line = "# " + line
		}
		if _, err := fmt.Fprintf(w, "%-48s # %s\n", line, note); err != nil {
			return err
		}
	}
	return nil
}

// quote writes a value so that it is parsed as the same text.
func quote(f Field, text string) (string, error) {
	if f.Unit != "" {
		return text, nil // numbers and durations need no quotes
	}
	b, err := yaml.Marshal(text)
	return strings.TrimRight(string(b), "\n"), err
}
