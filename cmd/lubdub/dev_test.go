package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/config"
	"github.com/lubdub-io/lubdub/internal/fleet"
	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
)

func loaded(t *testing.T, environ []string) *config.Loaded {
	t.Helper()
	cfg, err := config.Load(config.Input{Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestDevCheck(t *testing.T) {
	t.Parallel()
	r := launch(t, nil, "dev", "--for", "3s", "--rate", "8", "--check")
	out := strings.Join(r.rest(), "\n")
	// Other packages' tests share the cores, so here, and only here, being late is forgiven.
	onlyLate := strings.Count(out, "  wrong: ") == strings.Count(out, " by its own evidence, and may be ")
	switch {
	case r.code == exitOK && strings.HasSuffix(out, "\nevery verdict was right"):
	case r.code == exitFailed && onlyLate && regexp.MustCompile("verdicts were wrong|too busy").MatchString(r.errs.String()):
	default:
		t.Fatalf("it ended with %d\n%s", r.code, out)
	}
	for _, want := range []string{
		`^lubdub 1\.2\.3 listening on http://127\.0\.0\.1:\d+ \(.*redis embedded\)`, `\nembedded Redis: only to try Lubdub`,
		`\n +\d+s  live \d+  succeeded \d+ `, `\n(zombie |WRONG  ) task_\w+  .*  silent \d{4} ms of \d{4}  detected \d+ ms late`,
		`\nsummary of run fleet-`, `tasks created +\d+\n`, `workers killed +2, of whose tasks 80 were recovered\n`, `HEARTBEAT_TIMEOUT +\d+\n`,
		`wrong verdicts +\d`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

// A check on a machine that was too busy runs again, a limited number of times; a check with a wrong verdict does not.
func TestACheckThatProvesNothingIsPlayedAgain(t *testing.T) {
	busy, wrong := fmt.Errorf("late: %w", fleet.ErrTooBusy), errors.New("a verdict was wrong")
	for name, c := range map[string]struct {
		ends  []error
		want  error
		plays int
	}{
		"right":           {[]error{nil}, nil, 1},
		"wrong":           {[]error{wrong, nil}, wrong, 1},
		"busy, and right": {[]error{busy, nil}, nil, 2},
		"busy, and wrong": {[]error{busy, busy, wrong}, wrong, 3},
		"always busy":     {[]error{busy, busy, busy, nil}, busy, 3},
	} {
		plays, retries := 0, 0
		err := proved(func() error { plays++; return c.ends[plays-1] }, func(string) { retries++ })
		if err != c.want || plays != c.plays || retries != plays-1 {
			t.Errorf("%s: %v after %d plays, of which %d asked for another one", name, err, plays, retries)
		}
	}
}

func TestDevInterrupted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args    []string
		code    int
		message string
	}{
		"a show":  {[]string{"dev", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}, exitOK, ""},
		"a check": {[]string{"dev", "--check"}, exitFailed, "interrupted, so nothing is proved"},
	} {
		t.Run(name, func(t *testing.T) {
			r := launch(t, nil, c.args...)
			r.line("zombies") // a status: the fleet plays
			r.signal(syscall.SIGINT)
			out := strings.Join(r.rest(), "\n")
			if r.code != c.code || !strings.Contains(out, "summary of run") || !strings.Contains(r.errs.String(), c.message) {
				t.Errorf("it ended with %d\n%s", r.code, out)
			}
		})
	}
}

// New users paste the lines that dev prints, so they must work unchanged.
func TestGuideWorksAsPrinted(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"sh", "curl", "sed"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the guide is for people who have %s: %v", tool, err)
		}
	}
	r := launch(t, nil, "dev", "--no-fleet", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	r.line("Try it from another shell")
	script := []string{"set -eu"}
	for {
		l := r.line("")
		script = append(script, l)
		if strings.Contains(l, "/heartbeat") && strings.Contains(l, "silent-") {
			break
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	shell := exec.CommandContext(ctx, "sh", "-c", strings.Join(script, "\n"))
	shell.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	answers := strings.Split(strings.TrimSpace(string(out)), "\n")
	wants := []string{
		`"taskToken":`, `"acknowledged":true`, `"shouldCancel":false`, `"cancelRequested":true`, `"cancelReason":"user_requested"`,
		`"finalState":"CANCELLED"`, `"state":"CANCELLED"`, `"totalCount":1`, `"acknowledged":true`, `"reason":"HEARTBEAT_TIMEOUT"`,
		`"error":"task_expired"`,
	}
	if len(answers) != len(wants) {
		t.Fatalf("%d answers, want %d\n%s", len(answers), len(wants), out)
	}
	for i, want := range wants {
		if !json.Valid([]byte(answers[i])) || !strings.Contains(answers[i], want) {
			t.Errorf("answer %d lacks %s: %s", i+1, want, answers[i])
		}
	}
	r.signal(syscall.SIGTERM)
	if code := r.wait(); code != exitOK {
		t.Errorf("it ended with %d: %s", code, r.errs)
	}
}

func TestDevEndsByItself(t *testing.T) {
	r := launch(t, nil, "dev", "--no-fleet", "--for", "10ms", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	if code := r.wait(); code != exitOK {
		t.Errorf("it ended with %d: %s", code, r.errs)
	}
}

// The check against a real server that does not do its work: nothing sweeps, and the fleet must report that.
func TestCheckFailsWithoutSweeper(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	redis := redistest.StartServer(t)
	cfg := loaded(t, append([]string{"LUBDUB_REDIS=" + redis.URL(), "LUBDUB_SHARDS=2", "LUBDUB_ROLES=api", "LUBDUB_LISTEN=127.0.0.1:0",
		"LUBDUB_ADMIN_LISTEN=127.0.0.1:0", "LUBDUB_LOG_LEVEL=error"}, withKey...))
	keys, err := keyring(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p, err := open(context.Background(), cfg, keys, newLogger(&lockedBuffer{}, &cfg.Config))
	if err != nil {
		t.Fatal(err)
	}
	dispatch, _, err := keys.MintControl(token.Control{Role: token.RoleDispatcher, Tenant: "t", Workspace: "w", TTL: time.Hour}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx, func() {}) }()
	f := fleet.New(fleet.Options{BaseURL: p.apiURL(), Token: dispatch, Tenant: "t", Workspace: "w", Rate: 20, Patience: 500 * time.Millisecond,
		Only: func(name string) bool { return name == "crashes" || name == "steady" }})
	f.Run(ctx, 500*time.Millisecond)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	s := f.Summary()
	if s.Check() == nil || s.Wrongs < s.Unfinished || s.Unfinished == 0 || s.Succeeded == 0 ||
		!strings.Contains(s.String(), "missed: still RUNNING") {
		t.Errorf("%v\n%s", s.Check(), s)
	}
}

func TestScreen(t *testing.T) {
	var b bytes.Buffer
	plain := &screen{out: &b}
	plain.status("one")
	plain.print("two\n")
	plain.status("")
	if b.String() != "one\ntwo\n" {
		t.Errorf("%q", b.String())
	}
	b.Reset()
	var log bytes.Buffer
	term := &screen{out: &b, terminal: true}
	logWriter := term.wrap(&log)
	term.print("first")
	term.status("s1")
	term.status("s2")
	term.print("second")
	if _, err := logWriter.Write([]byte("logged\n")); err != nil {
		t.Error(err)
	}
	term.status("")
	term.print("third")
	s1, s2 := noWrap+"s1"+wrap, noWrap+"s2"+wrap
	if want := "first\n" + s1 + eraseLine + s2 + eraseLine + "second\n" + s2 + eraseLine + s2 + eraseLine + "third\n"; b.String() != want {
		t.Errorf("%q\nwant\n%q", b.String(), want)
	}
	if log.String() != "logged\n" {
		t.Errorf("%q", log.String())
	}
}
