package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// RSS returns the resident memory of a process, in bytes.
func RSS(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		if _, e := os.Stat("/proc/self/status"); e != nil {
			return 0, ErrNoProc
		}
		return 0, err
	}
	return kilobytes(string(text), "VmRSS:")
}

// kilobytes parses a line such as "VmRSS:     1234 kB".
func kilobytes(text, field string) (int64, error) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("there is no %s", field)
}
