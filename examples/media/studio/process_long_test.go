//go:build long

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/sdkrunner"
)

// long is more than anything here takes; it is only waited for when something is broken.
const long = 3 * time.Minute

// until polls until a condition holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(long); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain until %s", long, what)
		}
	}
}

// process is a running program whose output is in files.
type process struct {
	t      *testing.T
	name   string
	cmd    *exec.Cmd
	folder string
	exited chan struct{}
}

// start starts a program with further environment variables, which is killed at the end of the test.
func start(t *testing.T, name string, command, environ []string) *process {
	t.Helper()
	p := &process{t: t, name: name, cmd: exec.Command(command[0], command[1:]...), folder: t.TempDir(), exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), environ...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := os.Create(filepath.Join(p.folder, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close() // the process has its own
	errs, err := os.Create(filepath.Join(p.folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer errs.Close()
	p.cmd.Stdout, p.cmd.Stderr = out, errs
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // exit returns its code
		close(p.exited)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // also if it is frozen
		<-p.exited
		if t.Failed() {
			log := p.read("log")
			t.Logf("the end of the log of %s:\n%s", name, log[max(0, len(log)-4000):])
		}
	})
	return p
}

// read returns what the process has written so far: out is its standard output, log its standard error.
func (p *process) read(name string) string {
	text, err := os.ReadFile(filepath.Join(p.folder, name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// notices returns whether the process has logged a text since this call.
func (p *process) notices(text string) func() bool {
	from := len(p.read("log"))
	return func() bool { return strings.Contains(p.read("log")[from:], text) }
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
}

// exit waits until the process has ended, and returns its exit code.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(long):
		p.t.Fatalf("%s does not end", p.name)
	}
	return p.cmd.ProcessState.ExitCode()
}

// programs return the command of the example in each language, built if it needs that, and its environment.
var programs = map[string]func(t *testing.T) (command, environ []string){
	"go": func(t *testing.T) ([]string, []string) {
		program := filepath.Join(t.TempDir(), "media")
		run(t, "go", "build", "-trimpath", "-o", program, "../go")
		return []string{program}, nil
	},
	"python": func(t *testing.T) ([]string, []string) {
		python := "/usr/bin/python3"
		if _, err := os.Stat(python); err != nil {
			python = "python3"
		}
		return []string{python, absolute(t, "../python/media.py")}, []string{"PYTHONPATH=" + absolute(t, "../../../sdk/python/src")}
	},
	// As `npm install` and `npm run build` do it, but without the registry: the SDK has the same compiler.
	"typescript": func(t *testing.T) ([]string, []string) {
		if _, err := sdkrunner.Find("typescript", ""); err != nil { // which builds the SDK
			t.Fatal(err)
		}
		folder, sdk := t.TempDir(), absolute(t, "../../../sdk/typescript")
		must(t, os.Mkdir(filepath.Join(folder, "node_modules"), 0o755))
		must(t, os.Symlink(sdk, filepath.Join(folder, "node_modules", "lubdub")))
		must(t, os.Symlink(filepath.Join(sdk, "node_modules", "@types"), filepath.Join(folder, "node_modules", "@types")))
		for _, name := range []string{"media.ts", "package.json", "tsconfig.json"} {
			text, err := os.ReadFile(filepath.Join("../typescript", name))
			must(t, err)
			must(t, os.WriteFile(filepath.Join(folder, name), text, 0o600))
		}
		run(t, filepath.Join(sdk, "node_modules", ".bin", "tsc"), "-p", folder)
		return []string{"node", filepath.Join(folder, "build", "media.js")}, nil
	},
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	must(t, err)
	return path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
