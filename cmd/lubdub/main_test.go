package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lubdub-io/lubdub/internal/testenv"
)

// fasthttpCleaner is a goroutine of fasthttp's worker pool that finds out up to ten seconds late that its server has
// stopped, and fasthttpClock one that it never ends.
var fasthttpCleaner = goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2")

var fasthttpClock = goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1")

var buildDir string

func TestMain(m *testing.M) {
	var err error
	if buildDir, err = os.MkdirTemp("", "lubdub-test-"); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := os.RemoveAll(buildDir); err != nil {
		panic(err)
	}
	if code == 0 {
		if err := goleak.Find(fasthttpCleaner, fasthttpClock); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

const testKey = "k1=MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// command runs one command inside the test.
func command(environ []string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	a := &app{stdout: &out, stderr: &errs, environ: environ}
	code = a.run(args)
	return code, out.String(), errs.String()
}

// running is a process of the program.
type running struct {
	t      *testing.T
	cmd    *exec.Cmd
	lines  chan string // of standard output; closed at its end
	errs   *lockedBuffer
	exited chan struct{}
	code   int
}

// long is more than anything in these tests takes; it is only waited for when something is broken.
const long = 2 * time.Minute

// skipIfShort skips tests that build and run the program when `go test -short` requests the quick loop. They take long, and the go command,
// which caches the results of tests until something changes that they have read, does not see the program.
func skipIfShort(t *testing.T) {
	if testing.Short() {
		t.Helper()
		t.Skip("-short: no processes")
	}
}

// patientRedis is for all tests without another timeout: on a busy machine a round trip may take longer than a second.
const patientRedis = "LUBDUB_REDIS_TIMEOUT=20s"

// launch starts the program with nothing but the given environment and arguments.
func launch(t *testing.T, environ []string, args ...string) *running {
	t.Helper()
	return launchBy(t, environ, testenv.Program(t, "lubdub"), args...)
}

// launchBy starts a command that becomes the program.
func launchBy(t *testing.T, environ []string, path string, args ...string) *running {
	t.Helper()
	skipIfShort(t)
	r := &running{t: t, cmd: exec.Command(path, args...), lines: make(chan string, 10_000), errs: &lockedBuffer{}, exited: make(chan struct{})}
	r.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), patientRedis}, environ...)
	r.cmd.Stderr = r.errs
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			r.lines <- s.Text()
		}
		close(r.lines)
		err := r.cmd.Wait()
		var ended *exec.ExitError
		if errors.As(err, &ended) {
			r.code = ended.ExitCode()
		}
		close(r.exited)
	}()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-r.exited
		if t.Failed() {
			log := r.errs.String()
			t.Logf("the end of the standard error of %s:\n%s", strings.Join(args, " "), log[max(0, len(log)-4000):])
		}
	})
	return r
}

// line waits for a line with this text.
func (r *running) line(text string) string {
	r.t.Helper()
	deadline := time.After(long)
	for {
		select {
		case l, ok := <-r.lines:
			if !ok {
				<-r.exited
				r.t.Fatalf("it ended with %d and no line %q: %s", r.code, text, r.errs)
			}
			if strings.Contains(l, text) {
				return l
			}
		case <-deadline:
			r.t.Fatalf("no line %q: %s", text, r.errs)
		}
	}
}

// rest waits for the end and gives the lines before it.
func (r *running) rest() (lines []string) {
	r.t.Helper()
	for deadline := time.After(2 * long); ; {
		select {
		case l, ok := <-r.lines:
			if !ok {
				r.wait()
				return lines
			}
			lines = append(lines, l)
		case <-deadline:
			r.t.Fatalf("it does not end after %q: %s", lines, r.errs)
		}
	}
}

// wait returns the exit code.
func (r *running) wait() int {
	r.t.Helper()
	select {
	case <-r.exited:
	case <-time.After(long):
		r.t.Fatalf("it does not end: %s", r.errs)
	}
	return r.code
}

func (r *running) signal(s syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

var (
	apiPattern   = regexp.MustCompile(`listening on (http://\S+)`)
	adminPattern = regexp.MustCompile(`admin (http://[^,)]+)`)
)

// urls waits for the line with the addresses of the program.
func (r *running) urls() (api, admin string) {
	r.t.Helper()
	l := r.line("(admin http://")
	if m := apiPattern.FindStringSubmatch(l); m != nil {
		api = m[1]
	}
	return api, adminPattern.FindStringSubmatch(l)[1]
}

// lockedBuffer is a bytes.Buffer that may be read while a process writes to it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// one is a client that keeps no connection, so that it never delays a stop.
var one = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: long}

// request makes a request and gives its status and body; status 0 when there was no answer.
func request(method, url, token, body string) (int, string) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := one.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(b)
}

// fairly repeats a play that a busy machine made unfair, as play reports, up to three times. The last one counts in any case.
func fairly(t *testing.T, play func(t *testing.T, last bool) (fair bool)) {
	t.Helper()
	const plays = 3
	for n := 1; n <= plays; n++ {
		if fair := false; !t.Run(fmt.Sprint("play-", n), func(t *testing.T) { fair = play(t, n == plays) }) || fair {
			return
		}
	}
}

// until polls until the condition is true.
func until(t *testing.T, what string, good func() bool) {
	t.Helper()
	for deadline := time.Now().Add(long); !good(); {
		if time.Now().After(deadline) {
			t.Fatalf("it never came to be: %s", what)
		}
		time.Sleep(5 * time.Millisecond) // between two questions; nothing is concluded from it
	}
}
