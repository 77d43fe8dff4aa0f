package config

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

const referenceHead = `# Configuration

<!-- Written by ` + "`lubdub config reference`" + `; a test fails when it differs. Edit internal/config/config.go instead. -->

Every setting can be given in three ways, and the first that is there wins:

1. as a flag, ` + "`--listen 127.0.0.1:8080`" + `;
2. as a variable, ` + "`LUBDUB_LISTEN=127.0.0.1:8080`" + ` (an empty one counts as not set);
3. in a YAML file that ` + "`--config FILE`" + ` or ` + "`LUBDUB_CONFIG`" + ` names, ` + "`listen: 127.0.0.1:8080`" + `.

A flag, a variable that begins with LUBDUB_, or a key of the file that is not listed here is refused: a setting
that is misspelt must not look as if it were set. (The variables that Kubernetes makes for a Service called
lubdub are let pass, and so are those that begin with LUBDUB_TEST_, which the project's tests read.) Durations need a unit: ` + "`500ms`, `10s`, `1h30m`" + `.

` + "`lubdub config check`" + ` reports every mistake and exits with 2 if there is one. ` + "`lubdub config print`" + ` shows
the effective values and where each came from, with secrets hidden; its output can be used as a file.
`

// WriteReference writes docs/configuration.md.
func WriteReference(w io.Writer) error {
	b := &strings.Builder{}
	b.WriteString(referenceHead)
	group := ""
	for _, f := range Fields() {
		if f.Group != group {
			group = f.Group
			fmt.Fprintf(b, "\n## %s\n", group)
		}
		fmt.Fprintf(b, "\n### %s\n\n%s %s\n\n| | |\n| --- | --- |\n", f.Name, plain(f.Help), plain(f.Who))
		row := func(name, value string) { fmt.Fprintf(b, "| %s | %s |\n", name, value) }
		if f.EnvOnly {
			row("only as", "`"+f.Env+"`")
		} else {
			row("also as", "`--"+f.Name+"`, `"+f.Env+"`")
		}
		row("default", orWord(f.Default, "none"))
		if f.Unit != "" {
			row("unit", map[string]string{"duration": "a duration, such as `10s`", "count": "a whole number"}[f.Unit])
		}
		switch {
		case len(f.Enum) > 0:
			row("allowed", "`"+strings.Join(f.Enum, "`, `")+"`")
		case f.Min != "":
			row("bounds", "`"+f.Min+"` to `"+f.Max+"`")
		}
		row(f.zeroWord(), plain(f.Zero))
		if f.Secret == "all" {
			row("secret", "never printed or logged")
		} else if f.Secret == "url" {
			row("secret", "a password in it is never printed or logged")
		}
	}
	b.WriteString(removedHead)
	for _, name := range slices.Sorted(maps.Keys(removed)) {
		fmt.Fprintf(b, "| `%s` | %s |\n", name, removed[name])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

const removedHead = `
## Removed settings

This release still accepts them as flag, variable and key of the file, ignores their values, and logs a warning for each. The next one
refuses them.

| setting | instead |
| --- | --- |
`

// zeroWord returns the meaning of the field's zero value.
func (f Field) zeroWord() string {
	switch f.Unit {
	case "duration":
		return "0s means"
	case "count":
		return "0 means"
	default:
		return "empty means"
	}
}

// plain prevents Markdown from taking <master> for a tag.
func plain(text string) string { return strings.ReplaceAll(text, "<", `\<`) }

func orWord(value, word string) string {
	if value == "" {
		return word
	}
	return "`" + value + "`"
}
