package bench

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
)

// progress shows whoever waits what is going on: on a terminal one line that is written over and over, elsewhere a line
// for each step.
type progress struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	title    string
	width    int // of what stands on the terminal's line
}

func newProgress(w io.Writer, terminal bool) *progress {
	if w == nil {
		w = io.Discard
	}
	return &progress{w: w, terminal: terminal}
}

func (p *progress) scenario(title string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.title = title
	p.clear()
	fmt.Fprintln(p.w, title)
}

// step shows what comes next.
func (p *progress) step(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal {
		p.over(fmt.Sprintf(format, args...))
		return
	}
	fmt.Fprintf(p.w, "  "+format+"\n", args...)
}

// of returns the progress function of one load; total is 0 when there is no end to count to.
func (p *progress) of(what, unit string, total int64) func(load.Progress) {
	if !p.terminal {
		p.step("%s", what)
		return nil
	}
	p.step("%s", what)
	var last load.Progress
	var rate float64
	return func(at load.Progress) {
		if since := at.Elapsed - last.Elapsed; since >= 500*time.Millisecond {
			rate = float64(at.Beats-last.Beats) / since.Seconds()
			last = at
		}
		text := fmt.Sprintf("%s  %4.1f s  %s %s", what, at.Elapsed.Seconds(), grouped(at.Beats), unit)
		if total > 0 {
			text += fmt.Sprintf(" of %s", grouped(total))
		}
		if rate > 0 {
			text += fmt.Sprintf("  %s/s", grouped(int64(rate)))
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.over(text)
	}
}

func (p *progress) over(text string) {
	text = "  " + text
	fmt.Fprintf(p.w, "\r%s%s", text, strings.Repeat(" ", max(0, p.width-len(text))))
	p.width = len(text)
}

func (p *progress) clear() {
	if p.width > 0 {
		fmt.Fprintf(p.w, "\r%s\r", strings.Repeat(" ", p.width))
		p.width = 0
	}
}

func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

// grouped writes 1234567 as 1,234,567.
func grouped(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
