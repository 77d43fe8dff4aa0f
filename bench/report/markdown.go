package report

import (
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes the bars as a table in Markdown.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("| what | bar | aim | measured | met? |\n| --- | --- | --- | --- | --- |\n")
	for i := range r.Bars {
		row := rowOf(&r.Bars[i])
		verdict := string(row.Verdict)
		if row.Verdict == Missed {
			verdict = "**missed**"
		}
		if row.Note != "" {
			verdict += " (" + row.Note + ")"
		}
		for j, cell := range []string{row.What, row.Bar, row.Aim, row.Measured, verdict} {
			if j > 0 {
				b.WriteString(" ")
			}
			fmt.Fprintf(&b, "| %s", cells.Replace(cell))
		}
		b.WriteString(" |\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

var cells = strings.NewReplacer("|", `\|`, "\n", " ")
