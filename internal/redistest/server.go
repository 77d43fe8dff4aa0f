package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a private redis-server process on a loopback port, in a folder of its own. It dies with the test
// binary, however that ends.
type Server struct {
	Addr string

	dir  string
	conf string // path of a configuration file; empty: none
	args []string
	cmd  *exec.Cmd
	gone chan struct{}
}

// binary finds redis-server. Tests must not pass without a real one, so its absence is a failure, not a skip.
func binary() (string, error) {
	name := os.Getenv("LUBDUB_TEST_REDIS_SERVER")
	if name == "" {
		name = "redis-server"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("no real redis-server: %w; run `make test`, which installs one, or name it in LUBDUB_TEST_REDIS_SERVER", err)
	}
	return path, nil
}

// StartServer starts a server of the test's own, stopped and removed at its end. args are added to its command
// line.
func StartServer(t testing.TB, args ...string) *Server {
	t.Helper()
	return startServer(t, "", args)
}

// StartSentinel starts a Sentinel that watches a server by this name.
func StartSentinel(t testing.TB, name string, master *Server) *Server {
	t.Helper()
	host, port, _ := net.SplitHostPort(master.Addr)
	return startServer(t, fmt.Sprintf("sentinel monitor %s %s %s 1\n", name, host, port), []string{"--sentinel"})
}

func startServer(t testing.TB, conf string, args []string) *Server {
	t.Helper()
	s, err := newServer(conf, args)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.remove)
	return s
}

func newServer(conf string, args []string) (*Server, error) {
	dir, err := os.MkdirTemp("", "lubdub-redis-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, args: args}
	if conf != "" {
		s.conf = filepath.Join(dir, "redis.conf")
		if err := os.WriteFile(s.conf, []byte(conf), 0o600); err != nil {
			return nil, err
		}
	}
	for range 5 { // the free port may be taken before the server binds it
		s.Addr, err = freeAddr()
		if err == nil {
			err = s.start()
		}
		if err == nil {
			return s, nil
		}
	}
	_ = os.RemoveAll(dir)
	return nil, err
}

func freeAddr() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().String(), nil
}

func (s *Server) start() error {
	path, err := binary()
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(s.Addr)
	args := []string{}
	if s.conf != "" {
		args = append(args, s.conf)
	}
	args = append(args,
		"--bind", "127.0.0.1", "--port", port, "--dir", s.dir, "--save", "", "--appendonly", "no",
		"--databases", strconv.Itoa(databases), "--logfile", filepath.Join(s.dir, "redis.log"), "--daemonize", "no")
	args = append(args, s.args...)
	started := make(chan error, 1)
	s.gone = make(chan struct{})
	go func() {
		// The kernel sends Pdeathsig when the thread that started the child ends: keep it for as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cmd := exec.Command(path, args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		err := cmd.Start()
		s.cmd = cmd
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
		close(s.gone)
	}()
	if err := <-started; err != nil {
		return err
	}
	return s.awaitReady()
}

func (s *Server) awaitReady() error {
	c := s.Client()
	defer func() { _ = c.Close() }()
	deadline := time.Now().Add(15 * time.Second)
	for {
		err := c.Ping(context.Background()).Err()
		if err == nil {
			return nil
		}
		select {
		case <-s.gone:
			log, _ := os.ReadFile(filepath.Join(s.dir, "redis.log"))
			return fmt.Errorf("redis-server ended at once: %s", log)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return errors.Join(errors.New("redis-server did not answer within 15 s"), err)
		}
	}
}

// URL is that of database 0.
func (s *Server) URL() string { return "redis://" + s.Addr + "/0" }

// Client is a new client of the server, for assertions. Close it.
func (s *Server) Client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true, DialTimeout: time.Second})
}

// Freeze stops the process as a hung host would (SIGSTOP); Thaw lets it go on.
func (s *Server) Freeze() error { return s.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw lets a frozen server go on.
func (s *Server) Thaw() error { return s.cmd.Process.Signal(syscall.SIGCONT) }

// Kill ends the process at once (SIGKILL) and returns when it is gone.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.gone
}

// Restart starts the server again on the same port and folder after Kill.
func (s *Server) Restart() error { return s.start() }

func (s *Server) remove() {
	s.Kill()
	_ = os.RemoveAll(s.dir)
}
