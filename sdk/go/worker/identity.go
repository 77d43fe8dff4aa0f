package worker

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// registration says who this process is.
func (w *Worker) registration() v1.RegisterWorkerRequest {
	set := w.set
	host, _ := os.Hostname()
	labels := labelsOfEnvironment()
	maps.Copy(labels, set.labels)
	r := v1.RegisterWorkerRequest{
		Queue: w.queue, Types: w.types(), Runtimes: slices.Compact(append(runtimesFound(), set.runtimes...)), Name: set.name,
		MachineID: set.machineID, Hostname: host, PID: os.Getpid(), Version: set.version, MaxConcurrent: &set.concurrency, Labels: labels,
		ProbeURL: w.probeURL,
	}
	if r.Name == "" {
		r.Name = nameFound(r.PID)
	}
	if r.MachineID == "" {
		r.MachineID = asID(firstOf(os.Getenv("NODE_NAME"), host))
	}
	if r.Version == "" {
		r.Version = versionFound()
	}
	return r
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

// runtimesFound are go and its version without the last number: go1.26.
func runtimesFound() []string {
	parts := strings.SplitN(runtime.Version(), ".", 3)
	if len(parts) < 2 || !strings.HasPrefix(parts[0], "go") {
		return []string{"go"}
	}
	return []string{"go", parts[0] + "." + regexp.MustCompile(`^\d*`).FindString(parts[1])}
}

var containerID = regexp.MustCompile(`[0-9a-f]{64}`)

// nameFound tells this process from others on its machine. In a container it may be process 1 as they all are, and where the container
// has the host's network it has the host's name too: then the container's id does.
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

// asID makes an id of a host's name.
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
