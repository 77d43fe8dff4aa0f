// Package tui is the live view of a deployment on a terminal: what is there, sorted and filtered, one in detail, and acts behind a
// question. It works out nothing by itself: what it shows and does comes from its Source.
package tui

import (
	"context"
	"errors"
	"io"
	"time"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Source is what the view shows and acts on.
type Source interface {
	// Look reads the whole deployment, and the rows of a view.
	Look(ctx context.Context, view int) (*Picture, error)
	// Details tells all that is known of one row.
	Details(ctx context.Context, view int, id string) ([]string, error)
	// Act does something to one row and says what came of it.
	Act(ctx context.Context, view int, id string, act Act) (string, error)
}

// View is one table.
type View struct {
	Name string
	Acts []Act
}

// Act is what can be done to a row.
type Act struct {
	Key, Verb string
	// Command is the command line that does the same, with %s for the id.
	Command string
}

// Picture is what was there at a moment.
type Picture struct {
	Where    string
	Findings []v1.Finding
	// Numbers are the deployment's, in one line.
	Numbers string
	Heading []string
	Rows    []Row
	// Partial is true when only the findings could be read. The rows and numbers before them stay, and are marked as old.
	Partial bool
	// More says what is not among the rows; empty: nothing.
	More string
	At   time.Time
}

// Row is one of a table.
type Row struct {
	ID    string
	Cells []output.Cell
}

// Options are what Run takes.
type Options struct {
	Source Source
	Views  []View
	Every  time.Duration // how often it looks
	In     io.Reader
	Out    io.Writer
	Env    []string
}

// Run shows the view until it is left or ctx ends.
func Run(ctx context.Context, o Options) error {
	_, err := tea.NewProgram(newModel(ctx, o), tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithEnvironment(o.Env),
		tea.WithoutSignalHandler()).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return nil // it was told to end
	}
	return err
}

// mode is what keys do.
type mode uint8

const (
	browsing mode = iota
	filtering
	reading  // details
	deciding // an act
)

type model struct {
	o             Options
	ctx           context.Context
	width, height int

	mode    mode
	view    int
	picture *Picture // the newest; nil: none yet
	err     error    // why there is none that is newer
	looking bool

	filter   textinput.Model
	sort     int // a column; -1: as they come
	reversed bool
	selected string // an id
	offset   int    // of the first row, or line of details, that is shown

	details []string
	act     Act
	message string // what came of the last act
}

func newModel(ctx context.Context, o Options) *model {
	filter := textinput.New()
	filter.Prompt = "/"
	return &model{o: o, ctx: ctx, filter: filter, sort: -1, width: 80, height: 24}
}

// What arrives.
type (
	tick   struct{}
	looked struct {
		view    int
		picture *Picture
		err     error
	}
	told struct {
		view  int
		id    string
		lines []string
		err   error
	}
	acted struct {
		text string
		err  error
	}
)

func (m *model) Init() tea.Cmd { return tea.Batch(m.look(), m.wait()) }

func (m *model) wait() tea.Cmd { return tea.Tick(m.o.Every, func(time.Time) tea.Msg { return tick{} }) }

// look asks for a new picture, unless one is on its way.
func (m *model) look() tea.Cmd {
	if m.looking {
		return nil
	}
	m.looking = true
	view := m.view
	return func() tea.Msg {
		p, err := m.o.Source.Look(m.ctx, view)
		return looked{view, p, err}
	}
}

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tick:
		return m, tea.Batch(m.look(), m.wait())
	case looked:
		return m, m.take(msg)
	case told:
		if m.mode != reading || m.view != msg.view || m.selected != msg.id {
			break // asked for and left
		}
		if m.details = msg.lines; msg.err != nil {
			m.details = []string{msg.err.Error()}
		}
	case acted:
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

// take takes a picture in. One of another view than is shown by now is asked for again.
func (m *model) take(l looked) tea.Cmd {
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
