//go:build long

package main

import (
	"flag"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	demos    = flag.Int("demos", 20, "how often TestLongDemo runs what 'make demo' runs")
	showTime = flag.Duration("show", 10*time.Minute, "how long TestLongShow looks at what 'make run' runs")
)

// busy has four loops that do nothing share the cores until the test ends.
func busy(t *testing.T) {
	t.Helper()
	for range 4 {
		loop := exec.Command("sh", "-c", "while :; do :; done")
		if err := loop.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = loop.Process.Kill()
			_ = loop.Wait()
		})
	}
}

// The first command that anybody runs must not depend on what else the machine does: every demo outlives two killed
// workers, and every verdict is right.
func TestLongDemo(t *testing.T) {
	busy(t)
	for n := range *demos {
		r := launch(t, nil, "dev", "--for", "20s", "--check")
		out := strings.Join(r.rest(), "\n")
		_, summary, _ := strings.Cut(out, "\nsummary of run")
		if kills := strings.Count(out, "\nkilled  wkr_"); r.code != exitOK || kills < 2 || !strings.HasSuffix(out, "\nevery verdict was right") {
			t.Fatalf("demo %d ended with %d after %d kills: %s\n%s", n+1, r.code, kills, r.errs, out)
		}
		t.Logf("demo %d: %s", n+1, summary)
	}
}

// A show continues until it is stopped, and nothing in it is wrong.
func TestLongShow(t *testing.T) {
	busy(t)
	r := launch(t, nil, append([]string{"dev"}, anyPort...)...)
	api, _ := r.urls()
	over := time.After(*showTime)
	var wrong []string
	last := ""
	for playing := true; playing; {
		select {
		case l, ok := <-r.lines:
			if !ok {
				<-r.exited
				t.Fatalf("it ended unexpectedly with %d: %s", r.code, r.errs)
			}
			switch {
			case strings.HasPrefix(l, "WRONG"):
				wrong = append(wrong, l)
			case strings.HasPrefix(l, "mishap"), strings.HasPrefix(l, "unclear"), strings.HasPrefix(l, "killed"):
				t.Log(l)
			case strings.Contains(l, "  live "):
				last = l
			}
		case <-over:
			playing = false
		}
	}
	t.Log(last)
	if status, body := request("GET", api+"/readyz", "", ""); status != http.StatusOK {
		t.Errorf("after %v it is not ready: %d %s", *showTime, status, body)
	}
	r.signal(syscall.SIGINT)
	out := strings.Join(r.rest(), "\n")
	_, summary, _ := strings.Cut(out, "\nsummary of run")
	t.Log(summary)
	if r.code != exitOK || len(wrong) > 0 {
		t.Errorf("it ended with %d, and %d verdicts were wrong:\n%s", r.code, len(wrong), strings.Join(wrong, "\n"))
	}
}
