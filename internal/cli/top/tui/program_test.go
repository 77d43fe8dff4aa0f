package tui

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// stand is a Source in memory.
type stand struct {
	err  error
	done []string
}

func (s *stand) Look(_ context.Context, view int) (*Picture, error) {
	if s.err != nil {
		return nil, s.err
	}
	p := &Picture{Where: "a/b of here", Heading: []string{"ID", "STATE", "BEAT"}, At: time.Now(), Numbers: "numbers",
		Findings: []v1.Finding{{Code: "x", Severity: v1.SeverityFail, Message: "No sweeper runs.", Remedy: "start one"}}}
	for i := range 40 {
		p.Rows = append(p.Rows, Row{fmt.Sprintf("id-%d-%02d", view, i), []output.Cell{
			output.Text(fmt.Sprintf("id-%d-%02d", view, i)), output.Word("RUNNING"), output.Text(fmt.Sprintf("%ds", (i*7)%40)),
		}})
	}
	return p, nil
}

func (s *stand) Details(_ context.Context, _ int, id string) ([]string, error) {
	return []string{"all of " + id + " \x1b[31m" + strings.Repeat("word ", 40)}, nil
}

func (s *stand) Act(_ context.Context, _ int, id string, act Act) (string, error) {
	s.done = append(s.done, act.Verb+" "+id)
	return act.Verb + " done", nil
}

// screen drives a model by hand.
type screen struct {
	t *testing.T
	m *model
	s *stand
}

func newScreen(t *testing.T) *screen {
	s := &stand{}
	views := []View{{"first", []Act{{"d", "Drain", "lubdub drain %s"}}}, {"second", nil}}
	c := &screen{t, newModel(t.Context(), Options{Source: s, Views: views, Every: time.Hour}), s}
	c.m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	c.do(c.m.look())
	return c
}

// do runs the command that a key has started, and handles its result.
func (c *screen) do(cmd tea.Cmd) {
	for cmd != nil {
		switch msg := cmd().(type) {
		case pictureMsg, detailsMsg, actMsg:
			_, cmd = c.m.Update(msg)
		default:
			return
		}
	}
}

func (c *screen) press(keys ...string) *screen {
	for _, key := range keys {
		msg := tea.KeyPressMsg{Text: key, Code: []rune(key)[0]}
		switch key {
		case "enter":
			msg = tea.KeyPressMsg{Code: tea.KeyEnter}
		case "esc":
			msg = tea.KeyPressMsg{Code: tea.KeyEscape}
		case "down":
			msg = tea.KeyPressMsg{Code: tea.KeyDown}
		case "end":
			msg = tea.KeyPressMsg{Code: tea.KeyEnd}
		}
		_, cmd := c.m.Update(msg)
		if c.m.mode != filtering { // its cursor blinks
			c.do(cmd)
		}
	}
	return c
}

// escapes are what colours are made of.
var escapes = regexp.MustCompile(`\x1b\[[0-9;]*m`)

func (c *screen) shows(parts ...string) {
	c.t.Helper()
	text := escapes.ReplaceAllString(c.m.View().Content, "")
	for _, part := range parts {
		if !strings.Contains(text, part) {
			c.t.Errorf("%q is missing in\n%s", part, text)
		}
	}
	lines := strings.Split(text, "\n")
	if len(lines) != c.m.height {
		c.t.Errorf("%d lines on %d", len(lines), c.m.height)
	}
	for _, line := range lines {
		if lipgloss.Width(line) > c.m.width {
			c.t.Errorf("wider than %d: %s", c.m.width, line)
		}
	}
}

// The worst comes first, and what stops work is shown however much else is wrong; the screen stays as high as it is.
func TestTheViewShowsWhatIsWrong(t *testing.T) {
	c := newScreen(t)
	p := *c.m.picture
	p.Findings = nil
	for n := range 6 {
		p.Findings = append(p.Findings, v1.Finding{Code: "x", Severity: v1.SeverityFail, Message: fmt.Sprintf("Failure %d.", n)})
	}
	p.Findings = append(p.Findings, v1.Finding{Code: "redis-memory", Severity: v1.SeverityWarn, Message: "Redis is nearly full."},
		v1.Finding{Code: "queue", Severity: v1.SeverityWarn, Message: "1 queue is paused."}, v1.Finding{Code: "shards", Severity: v1.SeverityOK})
	c.m.take(pictureMsg{0, &p, nil})
	c.shows("FAIL Failure 0.", "FAIL Failure 2.", "WARN Redis is nearly full.", "WARN 1 queue is paused.", "and 3 more: lubdub status",
		"id-0-00")
	if c.press("end").shows("id-0-39"); strings.Contains(c.m.View().Content, "Failure 3.") {
		t.Error("all failures are shown")
	}
	p.Findings = p.Findings[8:]
	c.shows("OK no problems found")
}

// What could be read without Redis is shown above what was there before, which is marked as old.
func TestTheViewKeepsRowsThatCannotBeRead(t *testing.T) {
	c := newScreen(t)
	for range 2 {
		c.m.take(pictureMsg{0, &Picture{Where: "a/b", Partial: true, At: time.Now(),
			Findings: []v1.Finding{{Code: "redis", Severity: v1.SeverityFail, Message: "Redis is not responding."}}}, nil})
		c.shows("STALE rows as of", "FAIL Redis is not responding.", "id-0-00", "numbers")
	}
	c.do(c.m.look())
	c.shows("LIVE", "id-0-00")
	c.m.picture = nil
	c.m.take(pictureMsg{0, &Picture{Partial: true}, nil})
	c.shows("STALE", "Not known now.")
}

func TestTheViewMovesSortsAndFilters(t *testing.T) {
	c := newScreen(t)
	c.shows("LIVE", "a/b of here", "FAIL", "No sweeper runs.", "1 first", "id-0-00", "id-0-15", "d drain", "numbers")
	if c.press("down", "down"); c.m.current() != "id-0-02" {
		t.Errorf("selected: %s", c.m.current())
	}
	c.press("end").shows("id-0-39")
	c.press(">", ">", ">", "!").shows("BEAT↓")
	if rows := c.m.rows(); rows[0].Cells[2].Text != "39s" || rows[39].Cells[2].Text != "0s" {
		t.Errorf("%v … %v", rows[0], rows[39])
	}
	c.press("/", "-", "1", "7")
	c.shows("/-17")
	if c.press("enter"); len(c.m.rows()) != 1 {
		t.Errorf("%d rows", len(c.m.rows()))
	}
	c.press("/", "x", "enter").shows(`No first of 40 has "-17x" in it.`)
	c.press("esc").shows("id-0-39")
	c.press("2").shows("id-1-00")
	c.press("1", "enter").shows("all of id-0-00", "word")
	if strings.Contains(c.m.View().Content, "\x1b[31mword") {
		t.Error("what others wrote reaches the terminal as it is")
	}
	c.press("esc").shows("id-0-00")
	c.m.Update(tea.WindowSizeMsg{Width: 20, Height: 9})
	c.shows("id-0-00")
}

// An act is done after a yes only, to the row that was asked about.
func TestActsAreAskedFirst(t *testing.T) {
	c := newScreen(t)
	c.press("down", "d")
	c.shows("Drain id-0-01? y/N", "the same: lubdub drain id-0-01")
	c.press("enter").shows("Nothing was done.")
	c.press("d", "n")
	if len(c.s.done) != 0 {
		t.Errorf("done: %v", c.s.done)
	}
	c.press("d", "y").shows("Drain done")
	if !slices.Equal(c.s.done, []string{"Drain id-0-01"}) {
		t.Errorf("done: %v", c.s.done)
	}
	c.press("2", "d").shows("2 second")
	if c.m.mode != browsing || len(c.s.done) != 1 {
		t.Error("a view without acts acted")
	}
}

// If a server goes away the last picture stays, and the view marks it as old.
func TestWhatIsOldIsSaidToBe(t *testing.T) {
	c := newScreen(t)
	c.s.err = errors.New("it does not answer")
	c.do(c.m.look())
	c.shows("OFFLINE as of ", "it does not answer", "id-0-00")
	c.s.err = nil
	c.do(c.m.look())
	c.shows("LIVE", "id-0-00")
}

func TestCellsAreOrderedByWhatTheyMean(t *testing.T) {
	got := []string{"", "b", "3m20s", "12s", "350ms", "100", "2", "45%", "a", "3/10", "2d4h", "-1.5s"}
	slices.SortStableFunc(got, compare)
	want := []string{"-1.5s", "350ms", "2", "3/10", "12s", "45%", "100", "3m20s", "2d4h", "a", "b", ""}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := squeeze("wkr_01M81V2PRZT6K0BBB2ZFP7EBTT000", 12); got != "wkr_…EBTT000" {
		t.Errorf("%q", got)
	}
}

// What was asked for and left is not shown as what is read now.
func TestDetailsThatComeLateAreOfNothingElse(t *testing.T) {
	c := newScreen(t)
	_, first := c.m.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
	late := first()
	c.press("esc", "down", "enter").shows("all of id-0-01")
	c.m.Update(late)
	c.shows("all of id-0-01")
}

// The help lists the keys and the actions of the view, and returns to the rows.
func TestHelpListsKeysAndActions(t *testing.T) {
	c := newScreen(t)
	c.shows("? help")
	c.press("down", "?").shows("1 to 2, tab", "sort by", "d   drain: lubdub drain ID", "esc back")
	c.press("d")
	if c.press("?").shows("id-0-00"); c.m.current() != "id-0-01" || len(c.s.done) != 0 || c.m.mode != browsing {
		t.Errorf("after the help: %s, done %v", c.m.current(), c.s.done)
	}
	if c.press("2", "?"); strings.Contains(c.m.View().Content, "On the selected row") {
		t.Error("a view without actions lists some")
	}
}
