package main

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/bench/report"
)

// begin and end are the marks in the README between which everything is made from a report.
const begin, end = "<!-- bench -->\n", "<!-- /bench -->\n"

// showIn puts a report between the marks of a README; nil leaves nothing there.
func showIn(readme string, r *report.Report) (string, error) {
	before, rest, ok := strings.Cut(readme, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", errors.New("README.md has no lines <!-- bench --> and <!-- /bench --> to show the report between")
	}
	return before + begin + section(r) + end + after, nil
}

func section(r *report.Report) string {
	if r == nil {
		return ""
	}
	var b strings.Builder
	file := path.Join(results, r.Name)
	fmt.Fprintf(&b, "## How fast it is\n\n![CPU per beat, by way to take a beat](%s.svg)\n\n", file)
	_ = r.WriteMarkdown(&b) // a strings.Builder takes everything
	fmt.Fprintf(&b, "\nAll of it is from [%s.json](%s.json) ([as a page](%s.html)): `%s`, Lubdub %s, Redis %s, on %s, %s.\n",
		path.Base(file), file, file, r.Command, r.Lubdub.Version, r.Redis.Version, r.Machine.String(), r.StartedAt.UTC().Format(time.DateOnly))
	if r.HasMissed() {
		b.WriteString("What profiles say of the bars that are missed: [bench/README.md](bench/README.md#bars-that-are-missed).\n")
	}
	if r.Quick {
		b.WriteString("It was a quick run, and its numbers prove little.\n")
	}
	b.WriteString("[docs/benchmarks.md](docs/benchmarks.md) tells what each line means; `make bench` measures your machine.\n")
	return b.String()
}
