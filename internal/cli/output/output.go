// Package output writes what commands answer: as a table for people, or as the API's own JSON for programs.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
)

// Format is how an answer is written.
type Format string

const (
	Table Format = "table"
	Wide  Format = "wide"
	JSON  Format = "json"
	JSONL Format = "jsonl"
	YAML  Format = "yaml"
	Name  Format = "name"
)

// ForPeople reports whether a format is read by people.
func (f Format) ForPeople() bool { return f == Table || f == Wide }

// Printer writes answers in one format.
type Printer struct {
	W      io.Writer
	Format Format
	Colour bool
}

// Raw writes one object of the API in a format for programs.
func (p *Printer) Raw(raw json.RawMessage) error {
	switch p.Format {
	case JSONL:
		var line bytes.Buffer
		if err := json.Compact(&line, raw); err != nil {
			return err
		}
		_, err := fmt.Fprintln(p.W, line.String())
		return err
	case YAML:
		text, err := yaml.JSONToYAML(raw)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.W, "---\n%s", text)
		return err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, raw, "", "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p.W, strings.TrimRight(text.String(), "\n"))
	return err
}

const (
	reset  = "\x1b[0m"
	bold   = "\x1b[1m"
	faint  = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
)

var colours = map[Mood]string{Good: green, Doubtful: yellow, Bad: red, Faint: faint}

// Paint colours a text if colours are enabled.
func (p *Printer) Paint(mood Mood, s string) string {
	if !p.Colour || colours[mood] == "" || s == "" {
		return s
	}
	return colours[mood] + s + reset
}

// Bold makes a text bold if colours are enabled.
func (p *Printer) Bold(s string) string {
	if !p.Colour {
		return s
	}
	return bold + s + reset
}

// widest is how many characters of a cell a table shows; wide shows all.
const widest = 44

// Rows lays rows out under their heading. Widths are kept between calls, so that more rows may follow.
type Rows struct {
	p       *Printer
	heading []string
	widths  []int
	headed  bool
}

// Rows begins a table.
func (p *Printer) Rows(heading ...string) *Rows {
	return &Rows{p: p, heading: heading, widths: make([]int, len(heading))}
}

// Write writes rows, and the heading before the first.
func (r *Rows) Write(rows [][]Cell) error {
	all := rows
	if !r.headed {
		first := make([]Cell, len(r.heading))
		for i, name := range r.heading {
			first[i] = Cell{Text: name}
		}
		all = append([][]Cell{first}, rows...)
	}
	for n, row := range all {
		for i := range row {
			if row[i].Text = Clean(row[i].Text); row[i].Text == "" && (n > 0 || r.headed) {
				row[i].Text = "-"
			}
			if r.p.Format == Table {
				row[i].Text = Shorten(row[i].Text, widest)
			}
			r.widths[i] = max(r.widths[i], utf8.RuneCountInString(row[i].Text))
		}
	}
	var b strings.Builder
	for n, row := range all {
		for i, cell := range row {
			pad := ""
			if i < len(row)-1 {
				pad = strings.Repeat(" ", r.widths[i]-utf8.RuneCountInString(cell.Text)+2)
			}
			text := r.p.Paint(cell.Mood, cell.Text)
			if n == 0 && !r.headed {
				text = r.p.Bold(cell.Text)
			}
			b.WriteString(text + pad)
		}
		b.WriteByte('\n')
	}
	r.headed = true
	_, err := io.WriteString(r.p.W, b.String())
	return err
}

// Shorten cuts a text to n characters, the last of which is an ellipsis.
func Shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
