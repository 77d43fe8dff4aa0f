package e2e

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
)

// block returns the shell block of the tutorial that follows a walkthrough marker.
func block(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)<!-- walkthrough: " + name + " -->\n```sh\n(.*?)```").FindSubmatch(text)
	if m == nil {
		t.Fatalf("docs/tutorial.md has no walk-through block %q", name)
	}
	return string(m[1])
}

// build puts the binary where the tutorial expects it, under the test's own root.
func build(t *testing.T) (root string) {
	t.Helper()
	program := testenv.Program(t, "lubdub")
	root = t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(root, "bin", "lubdub")); err != nil {
		t.Fatal(err)
	}
	return root
}

var signingKeys = "LUBDUB_SIGNING_KEYS=k1=" + base64.StdEncoding.EncodeToString([]byte("a key of a test, 32 bytes or more"))

// serve starts one process and returns when it has printed its line, with the base URL that the line names.
func serve(t *testing.T, root string, args ...string) (url string) {
	t.Helper()
	return serveAll(t, root, args...)[0]
}

// serveAll does what serve does, and returns all base URLs that the line names: that of the API, where there is one, and that of the
// admin listener.
func serveAll(t *testing.T, root string, args ...string) []string {
	t.Helper()
	cmd := exec.Command(filepath.Join(root, "bin", "lubdub"), append([]string{"serve", "--admin-listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), signingKeys, "LUBDUB_REDIS_TIMEOUT=20s") // a busy machine may take longer than a second
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			t.Errorf("lubdub serve did not stop cleanly: %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("lubdub serve %v printed nothing: %v", args, err)
	}
	urls := regexp.MustCompile(`http://[0-9.:]+`).FindAllString(line, -1)
	if len(urls) == 0 {
		t.Fatalf("lubdub serve %v printed %q", args, line)
	}
	return urls
}

// walk runs the walk-through against an API and checks what it prints, step by step.
func walk(t *testing.T, root, api string) {
	t.Helper()
	script := strings.ReplaceAll(block(t, "life")+block(t, "workers")+block(t, "operate"), "http://127.0.0.1:8080", api)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-eu", "-c", script)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), signingKeys)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the walk-through failed: %v\n%s", err, out)
	}
	rest := string(out)
	for _, want := range []string{
		`"state":"DISPATCHED"`,
		`"acknowledged":true`, // started
		`"shouldCancel":false`,
		`"cancelRequested":true`,
		`"shouldCancel":true,"cancelReason":"user_requested"`,
		`"finalState":"CANCELLED"`,
		`"shouldCancel":false`, // the zombie's only beat
		`"state":"FAILED"`,
		`"reason":"HEARTBEAT_TIMEOUT"`,
		`"detectionLagMs":`,
		`"error":"task_expired"`,
		`"attempt":2`,
		`"error":"attempt_mismatch"`,
		`"expectedAttempt":2`,
		`"state":"QUEUED"`,
		`"taskId":"mail-1"`, // claimed
		`"accepted":true`,
		`"finalState":"SUCCEEDED"`,
		`"statusReason":"DEREGISTERED"`,
		`"status":"OFFLINE"`, // the machine
		`"series":`,
		`"reason":"odd results"`,
		`"unschedulableReasons":["cordoned"]`,
		`{"matched":1,"done":0,"dryRun":true,`,
		`"scheduleId":"nightly"`,
		`"fireAt":`,
		`"state":"CANCELLED","attempt":2`,
		`"reason":"TERMINATED"`,
		`"done":0,"refused":{}}`,
		`"secret":"whsec_`,
		`"type":"task.cancelled"`,
		`"by":"ann"`,
		`"type":"worker.cordoned"`,
	} {
		i := strings.Index(rest, want)
		if i < 0 {
			t.Fatalf("the walk-through did not print %s in its place; all of it:\n%s", want, out)
		}
		rest = rest[i+len(want):]
	}
}

func TestWalkthroughEmbedded(t *testing.T) {
	if !strings.Contains(block(t, "setup"), "serve --redis embedded") {
		t.Fatal("docs/tutorial.md starts another server than this test")
	}
	root := build(t)
	walk(t, root, serve(t, root, "--redis", "embedded", "--listen", "127.0.0.1:0"))
}

func TestWalkthroughReplicas(t *testing.T) {
	root := build(t)
	redis := redistest.StartServer(t, "--appendonly", "yes")
	for range 2 {
		serve(t, root, "--redis", redis.URL(), "--roles", "sweeper")
	}
	var replicas []string
	for range 2 {
		url := serve(t, root, "--redis", redis.URL(), "--roles", "api", "--listen", "127.0.0.1:0")
		replicas = append(replicas, strings.TrimPrefix(url, "http://"))
	}
	walk(t, root, balance(t, replicas))
}

// balance is a load balancer: each connection goes to the next replica.
func balance(t *testing.T, replicas []string) (url string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	var next atomic.Int64
	go func() {
		for {
			front, err := ln.Accept()
			if err != nil {
				return
			}
			back, err := net.Dial("tcp", replicas[next.Add(1)%int64(len(replicas))])
			if err != nil {
				_ = front.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{front, back}, {back, front}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1])
					_ = pair[0].Close()
				}()
			}
		}
	}()
	return fmt.Sprintf("http://%s", ln.Addr())
}
