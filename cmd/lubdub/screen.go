package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// screen writes lines and, below them, one status line. On a terminal the status is redrawn in place; elsewhere it is an ordinary line,
// printed less often.
type screen struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	shown    string // the status that is on the terminal now
}

func newScreen(out io.Writer) *screen {
	s := &screen{out: out}
	if f, ok := out.(*os.File); ok && os.Getenv("TERM") != "dumb" {
		info, err := f.Stat()
		s.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return s
}

// pace is the interval at which the status is printed.
func (s *screen) pace() time.Duration {
	if s.terminal {
		return 200 * time.Millisecond
	}
	return 2 * time.Second
}

const (
	eraseLine = "\r\x1b[K"
	noWrap    = "\x1b[?7l" // a status longer than the terminal is wide must stay on one line
	wrap      = "\x1b[?7h"
)

// print writes text above the status.
func (s *screen) print(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	fmt.Fprintln(s.out, strings.TrimRight(text, "\n"))
	s.draw()
}

// status replaces the status line; an empty text removes it.
func (s *screen) status(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.terminal {
		if text != "" {
			fmt.Fprintln(s.out, text)
		}
		return
	}
	s.erase()
	s.shown = text
	s.draw()
}

func (s *screen) erase() {
	if s.shown != "" {
		fmt.Fprint(s.out, eraseLine)
	}
}

func (s *screen) draw() {
	if s.shown != "" {
		fmt.Fprint(s.out, noWrap, s.shown, wrap)
	}
}

// Returns a writer for another stream of the same terminal, such as the log, that leaves the status intact.
func (s *screen) wrap(w io.Writer) io.Writer { return &screenWriter{s, w} }

type screenWriter struct {
	*screen
	w io.Writer
}

func (b *screenWriter) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
	defer b.draw()
	return b.w.Write(p)
}
