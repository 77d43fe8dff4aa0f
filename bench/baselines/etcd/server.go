package main

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
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// server is an etcd process of one node, on loopback, in a folder of its own. It dies with this program.
type server struct {
	url  string
	dir  string
	proc *os.Process
	gone chan struct{}
}

func start(ctx context.Context) (*server, error) {
	path, err := exec.LookPath("etcd")
	if err != nil {
		return nil, errors.New("there is no etcd here: install it (Debian: apt-get install etcd-server), or leave this baseline out")
	}
	dir, err := os.MkdirTemp("", "lubdub-etcd-")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, gone: make(chan struct{})}
	clients, peers, err := freeURLs()
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	s.url = clients
	out, err := os.Create(filepath.Join(dir, "etcd.log"))
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	cmd := exec.Command(path, "--name", "bench", "--data-dir", filepath.Join(dir, "data"),
		"--listen-client-urls", clients, "--advertise-client-urls", clients,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "bench="+peers)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")} // no ETCD_… of whoever runs this
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = diesWithParent()
	started := make(chan error)
	go func() {
		// The kernel takes the end of the thread that started the child for the parent's: keep it as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(s.gone)
		}
	}()
	err = <-started
	_ = out.Close()
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	s.proc = cmd.Process
	if err := s.ready(ctx); err != nil {
		text, _ := os.ReadFile(out.Name())
		s.remove()
		return nil, fmt.Errorf("etcd does not answer: %w\n%s", err, text)
	}
	return s, nil
}

// ready returns when the node leads and grants leases.
func (s *server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	go func() {
		select {
		case <-s.gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.url}, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	for {
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		_, err = client.Grant(attempt, 90)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

// cpuSeconds is what etcd has used so far, user and system.
func (s *server) cpuSeconds() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.proc.Pid))
	if err != nil {
		return 0, fmt.Errorf("no CPU times here: %w", err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, err := strconv.ParseFloat(fields[11], 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100, err // USER_HZ
}

func (s *server) remove() {
	_ = s.proc.Kill()
	<-s.gone
	_ = os.RemoveAll(s.dir)
}

// freeURLs returns two loopback addresses that nothing listens on.
func freeURLs() (clients, peers string, err error) {
	var urls [2]string
	for i := range urls {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", "", err
		}
		defer func() { _ = ln.Close() }()
		urls[i] = "http://" + ln.Addr().String()
	}
	return urls[0], urls[1], nil
}
