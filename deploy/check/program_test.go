package check

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// fileOfOurs finds the folder of a file that something has to be mounted for.
var fileOfOurs = regexp.MustCompile(`^/etc/lubdub/[^/]+`)

// lubdub is the program, built once.
var lubdub string

func TestMain(m *testing.M) {
	code, err := withProgram(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func withProgram(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "lubdub-check")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	lubdub = filepath.Join(dir, "lubdub")
	build := exec.Command("go", "build", "-o", lubdub, "./cmd/lubdub")
	build.Dir, build.Env = "../..", append(os.Environ(), "GOWORK=")
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("%w\n%s", err, out)
	}
	return m.Run(), nil
}

// effective are settings as the program reads them.
type effective map[string]string

// settings runs the program with an environment and the file in the config map, and returns its configuration. The program refuses settings
// that it does not know.
func (o *objects) settings(t *testing.T, env map[string]string) effective {
	t.Helper()
	at := slices.IndexFunc(o.configMaps, func(c *corev1.ConfigMap) bool { return c.Data["lubdub.yaml"] != "" })
	if at < 0 || filepath.Base(env["LUBDUB_CONFIG"]) != "lubdub.yaml" {
		t.Fatalf("none of %d config maps has settings, and %q is read", len(o.configMaps), env["LUBDUB_CONFIG"])
	}
	file := filepath.Join(t.TempDir(), "lubdub.yaml")
	if err := os.WriteFile(file, []byte(o.configMaps[at].Data["lubdub.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(lubdub, "config", "print")
	for name, value := range env {
		if name == "LUBDUB_CONFIG" {
			value = file
		}
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return printed(t, cmd)
}

func printed(t *testing.T, cmd *exec.Cmd) effective {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	var all map[string]any
	if err := yaml.UnmarshalStrict(out, &all); err != nil {
		t.Fatal(err)
	}
	e := effective{}
	for name, value := range all {
		e[name] = fmt.Sprint(value)
	}
	if !slices.Contains([]string{"api", "sweeper"}, e["roles"]) {
		t.Errorf("the roles are %q", e["roles"])
	}
	return e
}

func (e effective) seconds(t *testing.T, name string) float64 {
	t.Helper()
	d, err := time.ParseDuration(e[name])
	if err != nil {
		t.Fatal(err)
	}
	return d.Seconds()
}
