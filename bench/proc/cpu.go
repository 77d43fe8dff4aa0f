package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// CPU is the CPU time of a process at one moment.
type CPU struct {
	total   time.Duration            // of all its threads, including ended ones; in ticks of 10 ms
	threads map[string]time.Duration // of each living thread, in nanoseconds; nil: the kernel does not report it
}

// tick is the unit of /proc/<pid>/stat: USER_HZ is 100 on every architecture that Go supports.
const tick = 10 * time.Millisecond

// ErrNoProc is returned on systems without /proc.
var ErrNoProc = errors.New("this system has no /proc, so CPU and memory of processes cannot be read")

// ReadCPU reads the CPU time of a process.
func ReadCPU(pid int) (CPU, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		if _, e := os.Stat("/proc/self/stat"); e != nil {
			return CPU{}, ErrNoProc
		}
		return CPU{}, err
	}
	c := CPU{}
	if c.total, err = parseStat(string(stat)); err != nil {
		return CPU{}, err
	}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has just ended
		}
		used, err := parseSchedstat(string(text))
		if err != nil {
			return c, nil
		}
		if c.threads == nil {
			c.threads = make(map[string]time.Duration, len(files))
		}
		c.threads[name] = used
	}
	return c, nil
}

// Since returns the CPU time used since before. The exact times of threads omit threads that ended in between; then the ticks are higher,
// and they are used.
func (c CPU) Since(before CPU) time.Duration {
	ticks := c.total - before.total
	if c.threads == nil || before.threads == nil {
		return ticks
	}
	var exact time.Duration
	for name, used := range c.threads {
		exact += used - before.threads[name]
	}
	if ticks-exact > 2*tick {
		return ticks
	}
	return exact
}

// parseStat parses utime and stime. The command's name comes before them and may contain any characters.
func parseStat(text string) (time.Duration, error) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/<pid>/stat holds %q", text)
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	if err != nil {
		return 0, err
	}
	return time.Duration(user+system) * tick, nil
}

// parseSchedstat parses the first number: ns on a CPU.
func parseSchedstat(text string) (time.Duration, error) {
	first, _, _ := strings.Cut(text, " ")
	n, err := strconv.ParseInt(first, 10, 64)
	return time.Duration(n), err
}
