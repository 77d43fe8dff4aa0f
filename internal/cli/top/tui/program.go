package tui

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Run shows the view until the user quits or ctx is done.
func Run(ctx context.Context, o Options) error {
	_, err := tea.NewProgram(newModel(ctx, o), tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithEnvironment(o.Env),
		tea.WithoutSignalHandler()).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return nil // it was interrupted
	}
	return err
}

func (m *model) Init() tea.Cmd { return tea.Batch(m.look(), m.wait()) }

func (m *model) wait() tea.Cmd {
	return tea.Tick(m.o.Every, func(time.Time) tea.Msg { return tickMsg{} })
}

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tickMsg:
		return m, tea.Batch(m.look(), m.wait())
	case pictureMsg:
		return m, m.take(msg)
	case detailsMsg:
		if m.mode != reading || m.view != msg.view || m.selected != msg.id {
			break // the user left this view before the answer came
		}
		if m.details = msg.lines; msg.err != nil {
			m.details = []string{msg.err.Error()}
		}
	case actMsg:
		if m.message = msg.text; msg.err != nil {
			m.message = msg.err.Error()
		}
		return m, m.look()
	case tea.KeyPressMsg:
		return m, m.press(msg)
	case tea.PasteMsg:
		if m.mode == filtering {
			var cmd tea.Cmd
			m.filter, cmd = m.filter.Update(msg)
			return m, cmd
		}
	}
	return m, nil
}

// take shows a picture. If the view has changed since the request, it requests another one.
func (m *model) take(l pictureMsg) tea.Cmd {
	m.looking = false
	if l.view != m.view {
		return m.look()
	}
	if m.err = l.err; l.err == nil {
		if before := m.picture; l.picture.Partial && before != nil {
			l.picture.Heading, l.picture.Rows, l.picture.Numbers, l.picture.At = before.Heading, before.Rows, before.Numbers, before.At
		}
		m.picture = l.picture
	}
	return nil
}
