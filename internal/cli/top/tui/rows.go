package tui

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lubdub-io/lubdub/internal/cli/output"
)

// rows returns the rows that pass the filter, in order.
func (m *model) rows() []Row {
	if m.picture == nil {
		return nil
	}
	wanted := strings.ToLower(m.filter.Value())
	var rows []Row
	for _, r := range m.picture.Rows {
		if wanted == "" || r.has(wanted) {
			rows = append(rows, r)
		}
	}
	if m.sort >= 0 {
		slices.SortStableFunc(rows, func(a, b Row) int { return compare(a.Cells[m.sort].Text, b.Cells[m.sort].Text) })
	}
	if m.reversed {
		slices.Reverse(rows)
	}
	return rows
}

// at returns the index of the selected row, or of the first row if that is gone.
func (m *model) at(rows []Row) int {
	return max(0, slices.IndexFunc(rows, func(r Row) bool { return r.ID == m.selected }))
}

// current returns the selected row's id, or the first row's if none is selected.
func (m *model) current() string {
	rows := m.rows()
	if len(rows) == 0 {
		return ""
	}
	return rows[m.at(rows)].ID
}

func (r Row) has(text string) bool {
	return slices.ContainsFunc(r.Cells, func(c output.Cell) bool { return strings.Contains(strings.ToLower(c.Text), text) })
}

// compare orders the texts of cells: numbers, shares and durations by size, and before words; empty cells come last.
func compare(a, b string) int {
	x, xIs := size(a)
	y, yIs := size(b)
	switch {
	case xIs && yIs:
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
	case xIs != yIs && a != "" && b != "":
		if xIs {
			return -1
		}
		return 1
	case (a == "") != (b == ""):
		if b == "" {
			return -1
		}
		return 1
	}
	return cmp.Compare(a, b)
}

var (
	measured = regexp.MustCompile(`^-?(\d+(\.\d+)?(ms|[smhd%])?)+(/\d+)?$`)
	part     = regexp.MustCompile(`(\d+(?:\.\d+)?)(ms|[smhd%])?`)
	units    = map[string]float64{"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
)

// size returns the numeric value of a cell's text: 12, 45%, 3/10, 350ms, 3m20s.
func size(text string) (sum float64, is bool) {
	if !measured.MatchString(text) {
		return 0, false
	}
	text, _, _ = strings.Cut(text, "/")
	for _, p := range part.FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseFloat(p[1], 64)
		if err != nil {
			return 0, false
		}
		sum += n * cmp.Or(units[p[2]], 1)
	}
	if strings.HasPrefix(text, "-") {
		sum = -sum
	}
	return sum, true
}
