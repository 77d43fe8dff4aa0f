package redistest

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestServerLivesAndDies(t *testing.T) {
	s := StartServer(t, "--appendonly", "yes", "--appendfsync", "always")
	c := s.Client()
	defer func() { _ = c.Close() }()
	ctx := context.Background()
	if err := c.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]func(){
		"stop":        s.Stop,
		"kill":        s.Kill,
		"frozen stop": func() { _ = s.Freeze(); s.Stop() },
		"frozen kill": func() { _ = s.Freeze(); s.Kill() },
	} {
		end()
		if conn, err := net.Dial("tcp", s.Addr); err == nil {
			_ = conn.Close()
			t.Fatalf("%s: something still listens", name)
		}
		if err := s.Restart(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if v, err := c.Get(ctx, "k").Result(); v != "v" {
			t.Fatalf("%s: what it held is gone: %q %v", name, v, err)
		}
	}
}

func TestFrozenServerIsSilent(t *testing.T) {
	s := StartServer(t)
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := s.Freeze(); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 7)
	_, _ = conn.Write([]byte("PING\r\n"))
	_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := conn.Read(answer); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("it answers %q, %v", answer[:n], err)
	}
	if err := s.Thaw(); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(startTime))
	if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "+PONG\r\n" {
		t.Fatalf("after Thaw it answers %q, %v", answer, err)
	}
}

// A port that another process was quicker to take must not pass for ours: its keys are not this test's.
func TestAnotherServerIsNotTakenForOurs(t *testing.T) {
	other := StartServer(t)
	s := &Server{Addr: other.Addr, dir: t.TempDir()}
	if err := s.start(); err == nil {
		s.Kill()
		t.Fatal("started on a port that is taken")
	}
}

// failing is a test that remembers how it was ended.
type failing struct {
	testing.TB
	fatal   []any
	skipped bool
}

func (f *failing) Helper()           {}
func (f *failing) Fatal(args ...any) { f.fatal = args; runtime.Goexit() }
func (f *failing) Skip(...any)       { f.skipped = true; runtime.Goexit() }

func TestNoRedisIsAFailure(t *testing.T) {
	skipIfShort(t)
	t.Setenv("LUBDUB_TEST_REDIS_SERVER", "no-such-redis-server")
	f := &failing{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		StartServer(f)
	}()
	<-done
	if len(f.fatal) == 0 || t.Skipped() {
		t.Fatal("a test without a redis-server did not fail")
	}
	if text := f.fatal[0].(error).Error(); !strings.Contains(text, "make test") {
		t.Errorf("the error names no remedy: %s", text)
	}
}

// The quick loop starts no real server, in whichever way a test requests one.
func TestShortIsMiniredisAlone(t *testing.T) {
	short := flag.Lookup("test.short").Value
	before := short.String()
	_ = short.Set("true")
	t.Cleanup(func() { _ = short.Set(before) })
	for name, call := range map[string]func(testing.TB){
		"Real":         func(t testing.TB) { Real(t) },
		"Own":          func(t testing.TB) { Own(t) },
		"StartServer":  func(t testing.TB) { StartServer(t) },
		"StartCluster": func(t testing.TB) { StartCluster(t, 3, 0, time.Second) },
	} {
		f := &failing{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			call(f)
		}()
		if <-done; !f.skipped {
			t.Errorf("%s started a server", name)
		}
	}
}

// A test binary that is killed runs no Cleanup; its servers and folders must go all the same.
func TestNothingOutlivesTheTestBinary(t *testing.T) {
	if os.Getenv("REDISTEST_VICTIM") != "" {
		s := StartServer(t)
		os.Stdout.WriteString(s.Addr + " " + s.dir + "\n")
		select {}
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux kills the children of a process that was killed")
	}
	skipIfShort(t)
	victim := exec.Command(os.Args[0], "-test.run=^TestNothingOutlivesTheTestBinary$")
	victim.Env = append(os.Environ(), "REDISTEST_VICTIM=1")
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	addr, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
	if err != nil || dir == "" {
		t.Fatalf("the victim printed %q: %v", line, err)
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = victim.Process.Kill()
	_ = victim.Wait()

	deadline := time.Now().Add(startTime)
	_ = conn.SetReadDeadline(deadline)
	if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the server lives on")
	}
	for poll := time.NewTicker(5 * time.Millisecond); ; <-poll.C {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is still there", dir)
		}
	}
}
