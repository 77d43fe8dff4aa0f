package cron_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/lubdub-io/lubdub/internal/cron"
	"github.com/lubdub-io/lubdub/internal/nodetest"
)

var update = flag.Bool("update", false, "write testdata/croner.jsonl with croner's results")

// known is one line of testdata/croner.jsonl.
type known struct {
	Cron string `json:"cron"`
	Walk walk   `json:"walk"`
	Want walked `json:"says"`
}

const golden = "testdata/croner.jsonl"

// cases are random expressions, each with a walk.
func cases(t *testing.T, n int, seed uint64) (mine []string, walks []walk) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 2))
	for range n {
		ours, croners := expression(r)
		s, err := cron.Parse(ours)
		if err != nil {
			t.Fatalf("%q is refused: %v", ours, err)
		}
		mine, walks = append(mine, ours), append(walks, walkOf(r, croners, s))
	}
	return mine, walks
}

// runCroner has croner walk.
func runCroner(t *testing.T, walks []walk) []walked {
	t.Helper()
	folder := nodetest.Folder(t)
	script, err := os.ReadFile("testdata/croner.mjs")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(folder, "walk.mjs") // modules are resolved relative to the script
	if err := os.WriteFile(program, script, 0o600); err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	for _, w := range walks {
		if err := json.NewEncoder(&lines).Encode(w); err != nil {
			t.Fatal(err)
		}
	}
	node := exec.Command("node", program)
	node.Stdin, node.Stderr = &lines, os.Stderr
	out, err := node.Output()
	if err != nil {
		t.Fatalf("node: %v", err)
	}
	var results []walked
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		var w walked
		if err := json.Unmarshal(s.Bytes(), &w); err != nil {
			t.Fatal(err)
		}
		results = append(results, w)
	}
	if len(results) != len(walks) {
		t.Fatalf("croner answered %d of %d", len(results), len(walks))
	}
	return results
}

func hold(t *testing.T, ours string, w walk, want walked) {
	t.Helper()
	s, err := cron.Parse(ours)
	if err != nil {
		t.Fatalf("%q is refused: %v", ours, err)
	}
	if got := w.by(s); got != want {
		t.Errorf("%q (%q to croner) from %v: %+v, croner has %+v", ours, w.Cron, w.Starts[0], got, want)
	}
}

// Fires are those that npm's croner has, which joins the day fields by AND as well: 300 random expressions, five years each.
// TestLongCroner has 10,000, with croner at hand; -update fetches it too.
func TestFiresAreCroners(t *testing.T) {
	if *update {
		mine, walks := cases(t, 300, 1)
		var out bytes.Buffer
		for i, want := range runCroner(t, walks) {
			if err := json.NewEncoder(&out).Encode(known{mine[i], walks[i], want}); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(golden, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.Open(golden)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	n := 0
	for s := bufio.NewScanner(file); s.Scan(); n++ {
		var k known
		if err := json.Unmarshal(s.Bytes(), &k); err != nil {
			t.Fatal(err)
		}
		hold(t, k.Cron, k.Walk, k.Want)
	}
	if n != 300 {
		t.Errorf("%d expressions, want 300", n)
	}
}
