package worker

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// registration returns the request that registers this process.
func (w *Worker) registration() v1.RegisterWorkerRequest {
	set := w.set
	host, _ := os.Hostname()
	labels := labelsOfEnvironment()
	maps.Copy(labels, set.labels)
	r := v1.RegisterWorkerRequest{
		Queue: w.queue, Types: w.types(), Runtimes: slices.Compact(append(runtimesFound(), set.runtimes...)), Name: w.name,
		MachineID: machineOf(set, host), Hostname: host, PID: os.Getpid(), Version: set.version, MaxConcurrent: &set.concurrency, Labels: labels,
		ProbeURL: w.probeURL,
	}
	if r.Version == "" {
		r.Version = versionFound()
	}
	return r
}

func machineOf(set *settings, host string) string {
	return firstOf(set.machineID, asID(firstOf(os.Getenv("NODE_NAME"), host)))
}

// names are the names of the workers that run in this process, each with its queue and its machine.
var names sync.Map

// nameInProcess returns the worker's name, with a number if another worker of this process already uses it: two workers with one name
// would supersede each other. The name stays in use until forget is called.
func (w *Worker) nameInProcess() (name string, forget func()) {
	host, _ := os.Hostname()
	base := firstOf(w.set.name, nameFound(os.Getpid()))
	name = base
	for n := 2; ; n++ {
		key := [3]string{w.queue, machineOf(w.set, host), name}
		if _, taken := names.LoadOrStore(key, true); !taken {
			return name, func() { names.Delete(key) }
		}
		name = base + "-" + strconv.Itoa(n)
	}
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

func labelsOfEnvironment() map[string]string {
	labels := map[string]string{}
	for name, variable := range map[string]string{
		"pod": "POD_NAME", "namespace": "POD_NAMESPACE", "node": "NODE_NAME", "zone": "ZONE", "deployment": "DEPLOYMENT",
	} {
		if value := os.Getenv(variable); value != "" {
			labels[name] = value
		}
	}
	return labels
}

// runtimesFound returns go and its version without the last number: go1.26.
func runtimesFound() []string {
	parts := strings.SplitN(runtime.Version(), ".", 3)
	if len(parts) < 2 || !strings.HasPrefix(parts[0], "go") {
		return []string{"go"}
	}
	return []string{"go", parts[0] + "." + regexp.MustCompile(`^\d*`).FindString(parts[1])}
}

var containerID = regexp.MustCompile(`[0-9a-f]{64}`)

// nameFound returns a name that distinguishes this process from others on its machine. In a container the process id may always be 1, and
// with the host's network the host name is shared too: then the container's id distinguishes it.
func nameFound(pid int) string {
	if pod := os.Getenv("POD_NAME"); pod != "" {
		return pod
	}
	program := filepath.Base(os.Args[0])
	if pid == 1 {
		mounts, _ := os.ReadFile("/proc/self/mountinfo")
		if id := containerID.Find(mounts); id != nil {
			return program + "-" + string(id[:12])
		}
	}
	return program
}

// asID converts a host name to a valid id.
func asID(name string) string {
	id := regexp.MustCompile(`[^A-Za-z0-9._-]`).ReplaceAllString(name, "-")
	id = strings.TrimLeft(id, "._-")
	return id[:min(len(id), 128)]
}

func versionFound() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(12, len(s.Value))]
		}
	}
	return ""
}
