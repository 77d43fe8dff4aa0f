package proc

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// coreSplit is the result of SplitCores; nil: all share all cores.
var coreSplit atomic.Pointer[struct{ children, own unix.CPUSet }]

// SplitCores assigns n cores to all children that are started from now on, and the others to this process. If fewer than two would be left
// for this process it changes nothing, and returns none.
func SplitCores(n int) (children, own []int, err error) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, nil, err
	}
	if n < 1 || all.Count() < n+leastOwnCores {
		return nil, nil, nil
	}
	sets := &struct{ children, own unix.CPUSet }{}
	for core := 0; len(children)+len(own) < all.Count(); core++ {
		switch {
		case !all.IsSet(core):
		case len(children) < n:
			children = append(children, core)
			sets.children.Set(core)
		default:
			own = append(own, core)
			sets.own.Set(core)
		}
	}
	// New threads inherit the cores of the thread that starts them; the second pass is for threads that were started during the first.
	for range 2 {
		threads, err := filepath.Glob("/proc/self/task/*")
		if err != nil || len(threads) == 0 {
			return nil, nil, fmt.Errorf("the threads of this process: %w", ErrNoProc)
		}
		for _, path := range threads {
			id, _ := strconv.Atoi(filepath.Base(path))
			_ = unix.SchedSetaffinity(id, &sets.own) // it may have ended
		}
	}
	runtime.GOMAXPROCS(len(own))
	coreSplit.Store(sets)
	return children, own, nil
}

// onTheirCores starts a child with its cores. The caller has locked its thread.
func onTheirCores(start func() error) error {
	sets := coreSplit.Load()
	if sets == nil {
		return start()
	}
	if err := unix.SchedSetaffinity(0, &sets.children); err != nil {
		return fmt.Errorf("its cores: %w", err)
	}
	err := start()
	if back := unix.SchedSetaffinity(0, &sets.own); err == nil && back != nil {
		return fmt.Errorf("the cores of this process: %w", back)
	}
	return err
}
