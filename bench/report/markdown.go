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
		for _, cell := range []string{row.What, row.Bar, row.Aim, row.Measured, row.verdict("**missed**")} {
			fmt.Fprintf(&b, "| %s ", cells.Replace(cell))
		}
		b.WriteString("|\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

var cells = strings.NewReplacer("|", `\|`, "\n", " ")
