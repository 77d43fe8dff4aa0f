package redistest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// Concurrent test binaries have different ports, whether a server listens there or not.
func TestPortsAreOfOneTestBinary(t *testing.T) {
	const n = blockPorts + 50 // more than one block has
	if os.Getenv("REDISTEST_PORTS") != "" {
		for range n {
			fmt.Println(FreeAddr())
		}
		_, _ = io.Copy(io.Discard, os.Stdin) // until the other one has ended, however that ends
		return
	}
	other := exec.Command(os.Args[0], "-test.run=^TestPortsAreOfOneTestBinary$")
	other.Env = append(os.Environ(), "REDISTEST_PORTS=1")
	if _, err := other.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = other.Process.Kill(), other.Wait() }()
	theirs := map[string]bool{}
	for lines := bufio.NewScanner(out); len(theirs) < n && lines.Scan(); {
		theirs[lines.Text()] = true
	}
	if len(theirs) < n {
		t.Fatalf("it has got %d different ports of %d", len(theirs), n)
	}
	for range n {
		if addr := FreeAddr(); theirs[addr] {
			t.Errorf("both have %s", addr)
		}
	}
}
