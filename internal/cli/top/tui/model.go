// Package tui is the live view of a deployment on a terminal: tables, sorted and filtered, details of one row, and actions with a
// confirmation. Everything that it shows and does comes from its Source.
package tui

import (
	"context"
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
	// Details explains all that is known of one row.
	Details(ctx context.Context, view int, id string) ([]string, error)
	// Act performs an action on one row and returns the outcome.
	Act(ctx context.Context, view int, id string, act Act) (string, error)
}

// View is one table.
type View struct {
	Name string
	Acts []Act
}

// Act is an action on a row.
type Act struct {
	Key, Verb string
	// Command is the command line that does the same, with %s for the id.
	Command string
}

// Picture is the state at a moment.
type Picture struct {
	Where    string
	Findings []v1.Finding
	// Numbers are the deployment's, in one line.
	Numbers string
	Heading []string
	Rows    []Row
	// Partial is true when only the findings could be read. The rows and numbers before them stay, and are marked as old.
	Partial bool
	// More names what is not among the rows; empty: nothing.
	More string
	At   time.Time
}

// Row is one of a table.
type Row struct {
	ID    string
	Cells []output.Cell
}

// Options configure Run.
type Options struct {
	Source Source
	Views  []View
	Every  time.Duration // interval of updates
	In     io.Reader
	Out    io.Writer
	Env    []string
}

// mode determines the meaning of keys.
type mode uint8

const (
	browsing mode = iota
	filtering
	reading  // details
	helping  // the keys
	deciding // an act
)

type model struct {
	o             Options
	ctx           context.Context
	width, height int

	mode    mode
	view    int
	picture *Picture // the newest; nil: none yet
	err     error    // why there is no newer one
	looking bool

	filter   textinput.Model
	sort     int // a column; -1: the original order
	reversed bool
	selected string // an id
	offset   int    // of the first visible row, or line of details

	details []string
	act     Act
	message string // the result of the last action
}

func newModel(ctx context.Context, o Options) *model {
	filter := textinput.New()
	filter.Prompt = "/"
	return &model{o: o, ctx: ctx, filter: filter, sort: -1, width: 80, height: 24}
}

// Messages.
type (
	tickMsg    struct{}
	pictureMsg struct {
		view    int
		picture *Picture
		err     error
	}
	detailsMsg struct {
		view  int
		id    string
		lines []string
		err   error
	}
	actMsg struct {
		text string
		err  error
	}
)

// look requests a new picture, unless a request is under way.
func (m *model) look() tea.Cmd {
	if m.looking {
		return nil
	}
	m.looking = true
	view := m.view
	return func() tea.Msg {
		p, err := m.o.Source.Look(m.ctx, view)
		return pictureMsg{view, p, err}
	}
}
