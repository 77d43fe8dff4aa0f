package proc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// printCoreSplit prints which cores it was given, those of a child, and those of each thread of this process.
func printCoreSplit() {
	children, own, err := SplitCores(1)
	fmt.Println(children, own, err)
	if children == nil {
		return
	}
	c, err := Start("sh", exec.Command("sh", "-c", "grep Cpus_allowed_list /proc/self/status; exec sleep 1000"))
	if err != nil {
		panic(err)
	}
	fmt.Println(<-c.lines)
	c.Kill()
	threads, _ := filepath.Glob("/proc/self/task/*/status")
	for _, name := range threads {
		text, _ := os.ReadFile(name)
		for l := range strings.Lines(string(text)) {
			if strings.HasPrefix(l, "Cpus_allowed_list") {
				fmt.Print(l)
			}
		}
	}
}

// Children and this process get their own cores, all threads of them, where there are enough.
func TestSplitCores(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LUBDUB_TEST_PARENT=split")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if runtime.GOOS != "linux" || runtime.NumCPU() < 1+leastOwnCores {
		if lines[0] != "[] [] <nil>" || len(lines) > 1 {
			t.Errorf("%s", out)
		}
		return
	}
	list := func(line string) string { return strings.TrimSpace(strings.TrimPrefix(line, "Cpus_allowed_list:")) }
	if !strings.HasPrefix(lines[0], "["+list(lines[1])+"] [") {
		t.Errorf("a child runs on other cores than it was given: %s", out)
	}
	for _, l := range lines[2:] {
		if list(l) == list(lines[1]) || list(l) != list(lines[2]) {
			t.Errorf("a thread of this process has the cores %s: %s", list(l), out)
		}
	}
}
