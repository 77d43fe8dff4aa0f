package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

var (
	bold   = lipgloss.NewStyle().Bold(true)
	chosen = lipgloss.NewStyle().Reverse(true)
	faint  = lipgloss.NewStyle().Faint(true)
	moods  = map[output.Mood]lipgloss.Style{
		output.Good: lipgloss.NewStyle().Foreground(lipgloss.Green), output.Doubtful: lipgloss.NewStyle().Foreground(lipgloss.Yellow),
		output.Bad: lipgloss.NewStyle().Foreground(lipgloss.Red), output.Faint: faint,
	}
	levels = map[v1.Severity]output.Mood{v1.SeverityOK: output.Good, v1.SeverityWarn: output.Doubtful, v1.SeverityFail: output.Bad}
)

const below = 3 // lines below the table

// room returns how many rows fit.
func (m *model) room() int { return max(1, m.height-len(m.head())-below) }

func (m *model) View() tea.View {
	lines := append(m.head(), m.body()...)
	for len(lines) < m.height-below {
		lines = append(lines, "")
	}
	lines = append(lines, m.foot()...)
	clip := lipgloss.NewStyle().MaxWidth(max(1, m.width))
	for i := range lines {
		lines[i] = clip.Render(lines[i])
	}
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen, v.WindowTitle = true, "lubdub top"
	return v
}

// head shows the deployment, whether the picture is current, its health, and the current view.
func (m *model) head() []string {
	where, numbers, found := "", "", []string{""}
	if p := m.picture; p != nil {
		where, numbers, found = p.Where, p.Numbers, verdicts(p.Findings)
	}
	var tabs []string
	for i, v := range m.o.Views {
		tab := fmt.Sprintf(" %d %s ", i+1, v.Name)
		if i == m.view {
			tab = chosen.Render(tab)
		}
		tabs = append(tabs, tab)
	}
	lines := append([]string{m.live() + "  " + bold.Render(output.Clean(where)), numbers}, found...)
	return append(lines, strings.Join(tabs, ""), m.heading())
}

// live shows whether the picture is current. An outdated one is kept, and marked.
func (m *model) live() string {
	switch {
	case m.err != nil && m.picture != nil:
		return moods[output.Bad].Render("OFFLINE") + " as of " + output.Duration(time.Since(m.picture.At)) + " ago: " +
			output.Clean(m.err.Error())
	case m.err != nil:
		return moods[output.Bad].Render("OFFLINE") + " " + output.Clean(m.err.Error())
	case m.picture == nil:
		return "…"
	case m.picture.Partial:
		return moods[output.Bad].Render("STALE") + " rows as of " + output.Duration(time.Since(m.picture.At)) + " ago"
	}
	return moods[output.Good].Render("LIVE")
}

// mostVerdicts is how many findings are shown, except those that are never hidden.
const mostVerdicts = 3

// verdicts returns the findings other than healthy ones, worst first, or that all is well.
func verdicts(all []v1.Finding) (lines []string) {
	more := 0
	for i := range all {
		switch f := &all[i]; {
		case f.Severity == v1.SeverityOK:
		case len(lines) < mostVerdicts || f.StopsWork():
			lines = append(lines, moods[levels[f.Severity]].Render(strings.ToUpper(string(f.Severity)))+" "+output.Clean(f.Message))
		default:
			more++
		}
	}
	if len(lines) == 0 {
		return []string{moods[output.Good].Render("OK") + " no problems found with Lubdub or the workers"}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more: lubdub status", more))
	}
	return lines
}

func (m *model) heading() string {
	if m.picture == nil || m.mode == reading || m.mode == helping {
		return ""
	}
	cells := make([]output.Cell, len(m.picture.Heading))
	for i, name := range m.picture.Heading {
		if i == m.sort {
			mark := "↑"
			if m.reversed {
				mark = "↓"
			}
			name += mark
		}
		cells[i] = output.Cell{Text: name}
	}
	return bold.Render(strings.Join(padded(cells, m.widths()), "  "))
}

// widths returns the widths of the columns, over all rows, so that they do not change while scrolling.
func (m *model) widths() []int {
	widths := make([]int, len(m.picture.Heading))
	for i, name := range m.picture.Heading {
		widths[i] = lipgloss.Width(name) + 1 // for the mark
	}
	for _, r := range m.picture.Rows {
		for i, c := range r.Cells {
			widths[i] = max(widths[i], lipgloss.Width(output.Clean(c.Text)))
		}
	}
	fit(widths, m.width)
	return widths
}

// narrowest is the minimum width of a column. Columns at the right may then be cut off.
const narrowest = 9

// fit reduces the widest columns until all fit.
func fit(widths []int, room int) {
	for {
		sum, at := 2*(len(widths)-1), 0
		for i, w := range widths {
			if sum += w; w > widths[at] {
				at = i
			}
		}
		if sum <= room || widths[at] <= narrowest {
			return
		}
		widths[at]--
	}
}

// squeeze keeps the beginning and the end of a text, by which ids differ.
func squeeze(text string, room int) string {
	all := []rune(text)
	if len(all) <= room {
		return text
	}
	end := (room - 1) * 2 / 3
	return string(all[:room-1-end]) + "…" + string(all[len(all)-end:])
}

func padded(cells []output.Cell, widths []int) (all []string) {
	for i, c := range cells {
		text := squeeze(output.Clean(c.Text), widths[i])
		all = append(all, moods[c.Mood].Render(text+strings.Repeat(" ", max(0, widths[i]-lipgloss.Width(text)))))
	}
	return all
}

func (m *model) body() []string {
	switch {
	case m.mode == reading, m.mode == helping:
		lines := m.wrapped()
		from := max(0, min(m.offset, len(lines)-1))
		return lines[from:min(len(lines), from+m.room())]
	case m.picture == nil:
		return nil
	}
	rows := m.rows()
	if len(rows) == 0 && m.picture.Partial {
		return []string{"Not known now."}
	}
	if len(rows) == 0 {
		if m.filter.Value() != "" {
			return []string{fmt.Sprintf("No %s of %d has %q in it.", m.o.Views[m.view].Name, len(m.picture.Rows), m.filter.Value())}
		}
		return []string{fmt.Sprintf("No %s.", m.o.Views[m.view].Name)}
	}
	at, widths := m.at(rows), m.widths()
	m.offset = max(0, min(m.offset, at, len(rows)-m.room()))
	if at >= m.offset+m.room() {
		m.offset = at - m.room() + 1
	}
	var lines []string
	for i := m.offset; i < min(len(rows), m.offset+m.room()); i++ {
		line := strings.Join(padded(rows[i].Cells, widths), "  ")
		if i == at {
			plain := make([]output.Cell, len(rows[i].Cells))
			for n, c := range rows[i].Cells {
				plain[n] = output.Cell{Text: c.Text}
			}
			line = chosen.Render(strings.Join(padded(plain, widths), "  "))
		}
		lines = append(lines, line)
	}
	return lines
}

// wrapped returns the details in lines that fit.
func (m *model) wrapped() (lines []string) {
	for _, text := range m.details {
		for line := range strings.SplitSeq(lipgloss.Wrap(output.Clean(text), max(20, m.width-1), ""), "\n") {
			lines = append(lines, line)
		}
	}
	return lines
}

// foot shows the last result, or a question, and the keys.
func (m *model) foot() []string {
	switch m.mode {
	case filtering:
		return []string{m.filter.View(), faint.Render("enter keep  esc drop"), ""}
	case deciding:
		return []string{
			moods[output.Doubtful].Render(fmt.Sprintf("%s %s? y/N", m.act.Verb, output.Clean(m.selected))),
			faint.Render("the same: " + fmt.Sprintf(m.act.Command, output.Clean(m.selected))), "",
		}
	case reading, helping:
		return []string{"", m.message, faint.Render("↑↓ scroll  esc back  ctrl+c quit")}
	}
	message := m.message
	if message == "" && m.picture != nil {
		message = m.picture.More
	}
	if f := m.filter.Value(); f != "" {
		message = "/" + f + "  " + message
	}
	var acts []string
	for _, act := range m.o.Views[m.view].Acts {
		acts = append(acts, act.Key+" "+strings.ToLower(act.Verb))
	}
	const keys = "? help  q quit  tab view  ↑↓ move  enter why  / filter  <> sort  ! reverse"
	return []string{output.Clean(message), faint.Render(strings.Join(acts, "  ")), faint.Render(keys)}
}
