package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// press handles a key according to the mode.
func (m *model) press(k tea.KeyPressMsg) tea.Cmd {
	if k.String() == "ctrl+c" {
		return tea.Quit
	}
	switch m.mode {
	case filtering:
		return m.pressFilter(k)
	case reading, helping:
		return m.pressDetails(k)
	case deciding:
		return m.decide(k)
	}
	return m.pressTable(k)
}

func (m *model) pressFilter(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "esc":
		m.filter.SetValue("")
		fallthrough
	case "enter":
		m.filter.Blur()
		m.mode = browsing
		return nil
	}
	var cmd tea.Cmd
	m.filter, cmd = m.filter.Update(k)
	return cmd
}

func (m *model) pressDetails(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "q", "esc", "enter", "left", "?":
		m.mode, m.offset, m.details = browsing, 0, nil
	case "down", "j":
		m.offset++
	case "up", "k":
		m.offset--
	case "pgdown", "space":
		m.offset += m.room()
	case "pgup":
		m.offset -= m.room()
	}
	m.offset = max(0, min(m.offset, len(m.wrapped())-m.room()))
	return nil
}

// decide performs the action, or not.
func (m *model) decide(k tea.KeyPressMsg) tea.Cmd {
	m.mode = browsing
	if k.String() != "y" {
		m.message = "Nothing was done."
		return nil
	}
	act, id, view := m.act, m.selected, m.view
	m.message = act.Verb + " " + id + " …"
	return func() tea.Msg {
		text, err := m.o.Source.Act(m.ctx, view, id, act)
		return actMsg{text, err}
	}
}

func (m *model) pressTable(k tea.KeyPressMsg) tea.Cmd {
	key := k.String()
	if len(key) == 1 && key[0] >= '1' && int(key[0]-'1') < len(m.o.Views) {
		return m.show(int(key[0] - '1'))
	}
	switch key {
	case "q":
		return tea.Quit
	case "tab":
		return m.show((m.view + 1) % len(m.o.Views))
	case "shift+tab":
		return m.show((m.view + len(m.o.Views) - 1) % len(m.o.Views))
	case "/":
		m.mode = filtering
		return m.filter.Focus()
	case "esc":
		m.filter.SetValue("")
		m.message = ""
	case "<", ">":
		m.sortBy(key == ">")
	case "!":
		m.reversed = !m.reversed
	case "down", "j", "up", "k", "pgdown", "pgup", "home", "end":
		m.move(key)
	case "enter", "right":
		return m.read()
	case "?":
		m.mode, m.offset, m.details = helping, 0, m.help()
	default:
		m.ask(key)
	}
	return nil
}

// show switches to another view.
func (m *model) show(view int) tea.Cmd {
	if view == m.view {
		return nil
	}
	m.view, m.picture, m.selected, m.offset, m.sort, m.reversed, m.message = view, nil, "", 0, -1, false, ""
	return m.look()
}

// sortBy selects the next or the previous column; before the first is the original order of rows.
func (m *model) sortBy(next bool) {
	if m.picture == nil {
		return
	}
	n := len(m.picture.Heading) + 1
	if next {
		m.sort = (m.sort+2)%n - 1
	} else {
		m.sort = (m.sort+n)%n - 1
	}
}

// move changes the selection.
func (m *model) move(key string) {
	rows := m.rows()
	if len(rows) == 0 {
		return
	}
	at := m.at(rows)
	switch key {
	case "down", "j":
		at++
	case "up", "k":
		at--
	case "pgdown":
		at += m.room()
	case "pgup":
		at -= m.room()
	case "home":
		at = 0
	case "end":
		at = len(rows) - 1
	}
	m.selected = rows[max(0, min(at, len(rows)-1))].ID
}

// help lists the keys.
func (m *model) help() []string {
	lines := []string{
		fmt.Sprintf("1 to %d, tab, shift+tab   show another view", len(m.o.Views)),
		"↑ ↓ k j, page up, page down, home, end   select a row",
		"enter, →   explain the selected row, as lubdub why does",
		"/   show only rows that contain a text; esc shows all",
		"< >   sort by the previous or the next column; ! reverses the order",
		"q, ctrl+c   quit",
		"",
	}
	if acts := m.o.Views[m.view].Acts; len(acts) > 0 {
		lines = append(lines, "On the selected row, after a confirmation:")
		for _, act := range acts {
			lines = append(lines, act.Key+"   "+strings.ToLower(act.Verb)+": "+fmt.Sprintf(act.Command, "ID"))
		}
	}
	return lines
}

// read requests details.
func (m *model) read() tea.Cmd {
	id, view := m.current(), m.view
	if id == "" {
		return nil
	}
	m.selected, m.mode, m.offset, m.details = id, reading, 0, []string{"…"}
	return func() tea.Msg {
		lines, err := m.o.Source.Details(m.ctx, view, id)
		return detailsMsg{view, id, lines, err}
	}
}

// ask asks for confirmation of an action. The row is fixed: changes meanwhile do not change the target.
func (m *model) ask(key string) {
	for _, act := range m.o.Views[m.view].Acts {
		if id := m.current(); act.Key == key && id != "" {
			m.selected, m.act, m.mode, m.message = id, act, deciding, ""
		}
	}
}
