package redistest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// CPU returns the time that the server's main thread has spent on a core: so a script's cost does not depend on other load on the
// machine.
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
