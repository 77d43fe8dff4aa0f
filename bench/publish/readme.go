package main

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/bench/report"
)

// begin and end are the marks in a document between which the text is generated from a report.
const begin, end = "<!-- bench -->\n", "<!-- /bench -->\n"

// documents are the documents that show a report, by their paths from the repository's root.
var documents = map[string]func(*report.Report) string{"README.md": summary, "docs/benchmarks.md": table}

// headline contains the bars that the README shows, each with its words there; empty: those of the report.
var headline = map[string]string{
	"single-cpu-vs-naive":   "one heartbeat a request: CPU of server and Redis, relative to the straightforward implementation",
	"frontend-cpu-vs-empty": "one heartbeat a request: CPU of the server, relative to an empty fasthttp handler",
	"paced-25k-p99":         "", "batch-rate": "", "detection-lag-p99": "", "connections-rss": "",
}

// showIn inserts a section between the marks of a document.
func showIn(document, section string) (string, error) {
	before, rest, ok := strings.Cut(document, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", errors.New("there are no lines <!-- bench --> and <!-- /bench --> to show the report between")
	}
	return before + begin + section + end + after, nil
}

// summary is the README's section about a report: the headline. Empty: there is no report.
func summary(r *report.Report) string {
	if r == nil {
		return ""
	}
	var few []report.Bar
	for _, b := range r.Bars {
		if words, ok := headline[b.Name]; ok {
			b.What = cmp.Or(words, b.What)
			few = append(few, b)
		}
	}
	var b strings.Builder
	b.WriteString("## How fast it is\n\nIn the table, *bar* is what a release must reach and *aim* the goal beyond it; 0.18 × is 0.18 times " +
		"the cost of the other program, and *beat* is short for heartbeat.\n\n")
	b.WriteString(report.BarTable(few))
	fmt.Fprintf(&b, "\nMeasured on %s. [All results](docs/benchmarks.md#results); `make bench` measures your machine.\n",
		r.Machine.String())
	return b.String()
}

// table is the section of docs/benchmarks.md about a report: every bar. Empty: there is no report.
func table(r *report.Report) string {
	if r == nil {
		return ""
	}
	var b strings.Builder
	file := "../" + path.Join(results, r.Name)
	b.WriteString("## Results\n\n")
	b.WriteString(report.BarTable(r.Bars))
	fmt.Fprintf(&b, "\nFrom [%s.json](%s.json) ([with all runs](%s.md)): `%s`, Lubdub %s, Redis %s, on %s, %s.\n",
		path.Base(file), file, file, r.Command, r.Lubdub.Version, r.Redis.Version, r.Machine.String(), r.StartedAt.UTC().Format(time.DateOnly))
	if r.HasMissed() {
		b.WriteString("What profiles show of the bars that were missed: [bench/README.md](../bench/README.md#bars-that-are-missed).\n")
	}
	if r.Quick {
		b.WriteString("It was a quick run, and its numbers prove little.\n")
	}
	return b.String()
}
