package redistest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// CPU is how long the server's main thread has been on a core: what a script costs there does not depend on what else the
// machine does.
func (s *Server) CPU(t testing.TB) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", s.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	spent, _, _ := strings.Cut(string(text), " ")
	ns, err := strconv.ParseInt(spent, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(ns)
}
