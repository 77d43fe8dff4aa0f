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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a private redis-server process on a loopback port, in its own directory. It ends when the test binary does, in any way.
type Server struct {
	Addr string

	dir    string
	conf   string // path of a configuration file; empty: none
	acl    string // path of an ACL file; empty: none
	args   []string
	env    []string // in addition to the test's
	proc   *os.Process
	exited chan struct{} // closed when proc has ended
}

// StartServer starts a server for the test, and stops and removes it at the test's end. args are added to its command line.
func StartServer(t testing.TB, args ...string) *Server {
	t.Helper()
	return startServer(t, "", args)
}

func startServer(t testing.TB, conf string, args []string) *Server {
	t.Helper()
	return startServerWith(t, conf, nil, args)
}

// startServerIn starts a server with additional environment variables.
func startServerIn(t testing.TB, env []string, args ...string) *Server {
	t.Helper()
	return startServerWith(t, "", env, args)
}

func startServerWith(t testing.TB, conf string, env, args []string) *Server {
	t.Helper()
	skipIfShort(t)
	s, err := newServer(conf, env, args)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.remove)
	return s
}

// skipIfShort skips a test that needs a real redis-server under `go test -short`, which uses miniredis only. The full test run never skips.
func skipIfShort(t testing.TB) {
	if testing.Short() {
		t.Helper()
		t.Skip("-short: on miniredis only")
	}
}

// binary finds redis-server. Tests must not pass without one, so its absence is a failure, not a skip.
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

func newServer(conf string, env, args []string) (*Server, error) {
	if _, err := binary(); err != nil {
		return nil, err
	}
	root, err := folder()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(root, "")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, args: args, env: env}
	if conf != "" {
		s.conf = filepath.Join(dir, "redis.conf")
		if err := os.WriteFile(s.conf, []byte(conf), 0o600); err != nil {
			return nil, err
		}
	} else if err := s.writeACL(); err != nil {
		return nil, err
	}
	for range 5 { // a Cluster node's second port may be taken
		s.Addr = FreeAddr()
		if err = s.start(); err == nil {
			return s, nil
		}
	}
	_ = os.RemoveAll(dir)
	return nil, err
}

// writeACL creates Lubdub's user. Sentinels, the only servers with a configuration file, have none.
func (s *Server) writeACL() error {
	rules, err := aclFile()
	if err != nil {
		return err
	}
	s.acl = filepath.Join(s.dir, "users.acl")
	return os.WriteFile(s.acl, []byte(rules), 0o600)
}

func (s *Server) start(more ...string) error {
	path, err := binary()
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(s.Addr)
	var args []string
	if s.conf != "" {
		args = append(args, s.conf)
	}
	args = append(args,
		"--bind", "127.0.0.1", "--port", port, "--dir", s.dir, "--save", "", "--appendonly", "no",
		"--databases", strconv.Itoa(databases), "--logfile", s.logFile(), "--daemonize", "no")
	if s.acl != "" {
		args = append(args, "--aclfile", s.acl)
	}
	cmd := exec.Command(path, slices.Concat(args, s.args, more)...)
	cmd.SysProcAttr = diesWithParent()
	cmd.Env = append(os.Environ(), s.env...)
	started, exited := make(chan error), make(chan struct{})
	go func() {
		// The kernel takes the end of the thread that started the child for the parent's, so that thread must live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(exited)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	s.proc, s.exited = cmd.Process, exited
	if err := s.awaitReady(); err != nil {
		s.Kill()
		return err
	}
	return nil
}

func (s *Server) logFile() string { return filepath.Join(s.dir, "redis.log") }

// startTime is far more than a server needs to start, on any machine.
const startTime = time.Minute

// awaitReady waits until the server answers, and it is this one: another process may have taken the port first.
func (s *Server) awaitReady() error {
	c := redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1})
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	ours := fmt.Sprintf("process_id:%d\r\n", s.proc.Pid)
	for {
		err := c.Ping(ctx).Err()
		if err == nil {
			info, err := c.Info(ctx, "server").Result()
			if err == nil && !strings.Contains(info, ours) {
				err = fmt.Errorf("another server answers at %s", s.Addr)
			}
			return err
		}
		select {
		case <-s.exited:
			log, _ := os.ReadFile(s.logFile())
			return fmt.Errorf("redis-server ended at once: %s", log)
		case <-ctx.Done():
			return errors.Join(errors.New("redis-server did not answer within "+startTime.String()), err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// URL returns the URL of database 0, as Lubdub's user.
func (s *Server) URL() string { return "redis://" + As(s.Addr) + "/0" }

// Client returns a new client of the server, for assertions, which may run every command. The caller closes it.
func (s *Server) Client() *redis.Client { return dial(s.Addr, 0) }

func dial(addr string, db int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, DB: db, Protocol: 2, DisableIdentity: true, DialTimeout: time.Second})
}

// Freeze stops the process as a hung host would (SIGSTOP); Thaw continues it.
func (s *Server) Freeze() error { return s.proc.Signal(syscall.SIGSTOP) }

// Thaw continues a frozen server.
func (s *Server) Thaw() error { return s.proc.Signal(syscall.SIGCONT) }

// Stop ends the process gracefully (SIGTERM), also a frozen one, and waits until it is gone.
func (s *Server) Stop() {
	_ = s.proc.Signal(syscall.SIGTERM)
	_ = s.Thaw()
	<-s.exited
}

// Kill ends the process immediately (SIGKILL) and waits until it is gone.
func (s *Server) Kill() {
	_ = s.proc.Kill()
	<-s.exited
}

// Restart starts the server again on the same port and directory after Stop or Kill. args are added to its command line,
// this time only.
func (s *Server) Restart(args ...string) error { return s.start(args...) }

func (s *Server) remove() {
	s.Kill()
	_ = os.RemoveAll(s.dir)
	releasePort(s.Addr)
}
