package proc

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// Server is a measured HTTP program: Lubdub or a baseline.
type Server struct {
	URL   string
	Admin string // base URL of metrics; Lubdub's only
	// Pid is 0 if it runs elsewhere.
	Pid int

	child *Child
}

var aURL = regexp.MustCompile(`http://[0-9a-zA-Z.:\[\]-]+`)

// StartServer starts a program that prints its address in one line of standard output. env is the child's whole environment.
func StartServer(ctx context.Context, name, path string, env []string, args ...string) (*Server, error) {
	cmd := exec.Command(path, args...)
	cmd.Env = env
	child, err := Start(name, cmd)
	if err != nil {
		return nil, err
	}
	line, err := child.Line(ctx, 20*time.Second)
	if err != nil {
		child.Kill()
		return nil, err
	}
	s := &Server{Pid: child.Pid, child: child}
	before, after, _ := strings.Cut(line, "admin ")
	if s.URL = aURL.FindString(before); s.URL == "" {
		child.Kill()
		return nil, fmt.Errorf("%s does not print its listen address: %q", name, line)
	}
	s.Admin = aURL.FindString(after)
	return s, nil
}

// Stop ends the process if the benchmark started it.
func (s *Server) Stop() {
	if s.child != nil {
		s.child.Stop()
	}
}
