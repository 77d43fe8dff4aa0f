package outside

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/lubdub-io/lubdub/internal/testenv"
)

const sdk = "github.com/lubdub-io/lubdub/sdk/go"

// A program of a user who adds Lubdub to an existing application.
const (
	goMod = `module example.com/mailer

go 1.24.0

require github.com/prometheus/client_golang v1.20.5
`
	program = `package main

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
)

func main() {
	sent := prometheus.NewCounter(prometheus.CounterOpts{Name: "sent_total"})
	sent.Inc()
	c, err := client.New("https://lubdub.example", client.Token("x"))
	if err != nil {
		panic(err)
	}
	if _, err := worker.New(c, "default"); err != nil {
		panic(err)
	}
	fmt.Println(v1.CodeTaskExpired)
}
`
)

// A program that adds the SDK keeps its Go version, its dependencies and their versions. It gets the SDK as it would from a
// release: from a module proxy, which has what lies in this checkout.
func TestAUsersProgramStaysAsItIs(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": goMod, "main.go": program} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	user := &user{T: t, dir: dir, proxy: publish(t, "v1.2.3")}
	user.run("go", "get", sdk+"@v1.2.3")
	user.run("go", "mod", "tidy")
	user.run("go", "build", "-o", "mailer", ".")
	if out := user.run("./mailer"); out != "task_expired\n" {
		t.Errorf("the program prints %q", out)
	}
	now, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`go .*`, `toolchain .*`, `.*client_golang .*`} {
		before, after := find(line, []byte(goMod)), find(line, now)
		if before != after {
			t.Errorf("go.mod had %q and has %q", before, after)
		}
	}
	if !strings.Contains(string(now), sdk+" v1.2.3") {
		t.Errorf("go.mod does not require the SDK:\n%s", now)
	}
}

func find(line string, in []byte) string {
	return strings.TrimPrefix(strings.TrimSpace(string(regexp.MustCompile(`(?m)^\s*(?:require )?`+line+`$`).Find(in))), "require ")
}

// user is a user with a separate module, who gets the SDK from proxy.
type user struct {
	*testing.T
	dir, proxy string
}

// run returns what a command prints. Modules that this machine has are not downloaded again; of the SDK nothing is kept.
func (u *user) run(name string, args ...string) string {
	u.Helper()
	modCache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		u.Fatal(err)
	}
	online, err := exec.Command("go", "env", "GOPROXY").Output()
	if err != nil {
		u.Fatal(err)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = u.dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-modcacherw", "GOTOOLCHAIN=local", "GONOSUMDB="+sdk,
		"GOMODCACHE="+filepath.Join(u.proxy, "cache"), "GOPROXY=file://"+u.proxy+
			",file://"+filepath.Join(strings.TrimSpace(string(modCache)), "cache", "download")+","+strings.TrimSpace(string(online)))
	out, err := cmd.Output()
	if err != nil {
		stderr := ""
		if exit, ok := err.(*exec.ExitError); ok {
			stderr = string(exit.Stderr)
		}
		u.Fatalf("%s: %v\n%s%s", cmd, err, out, stderr)
	}
	return string(out)
}

// publish makes a folder that serves the SDK as GOPROXY.
func publish(t *testing.T, version string) string {
	t.Helper()
	proxy := t.TempDir()
	at := filepath.Join(proxy, filepath.FromSlash(sdk), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(at, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	if err := zip.CreateFromDir(f, module.Version{Path: sdk, Version: version}, "../../sdk/go"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	goMod, err := os.ReadFile("../../sdk/go/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	info, err := json.Marshal(map[string]string{"Version": version, "Time": "2026-01-02T03:04:05Z"})
	if err != nil {
		t.Fatal(err)
	}
	for ext, text := range map[string][]byte{".mod": goMod, ".info": info} {
		if err := os.WriteFile(filepath.Join(at, version+ext), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return proxy
}
