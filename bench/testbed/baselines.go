package testbed

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/proc"
	"github.com/lubdub-io/lubdub/bench/report"
	"github.com/lubdub-io/lubdub/bench/requests"
)

// Programs.
const (
	Lubdub       = "lubdub"
	Empty        = "empty"
	Naive        = "naive"
	Autopipeline = "autopipeline"
	Zadd         = "zadd"
	Etcd         = "etcd"
	Lives        = "life" // Lubdub's own client and worker
	Asynq        = "asynq"
	BullMQ       = "bullmq"
)

// baseline finds a baseline program. If it is missing the report notes that, and the comparison is not measured.
func (b *Bed) baseline(name string) (path string, ok bool) {
	path = filepath.Join(b.Baselines, name)
	if _, err := os.Stat(path); err != nil {
		b.Note("the baseline %s is missing from %s: what is measured against it is left out; 'make bench' builds it", name,
			filepath.Base(b.Baselines))
		return "", false
	}
	if !slices.Contains(b.Report.Settings.Baselines, name) {
		b.Report.Settings.Baselines = append(b.Report.Settings.Baselines, name)
	}
	return path, true
}

// WithBaselines returns a deployment and the available HTTP baselines, until the end of the scenario. They use Lubdub's tasks: the tokens
// are the same, since the signing keys are.
func (b *Bed) WithBaselines(f *Fixture) []*Target {
	targets := []*Target{&f.Target}
	for _, name := range []string{Empty, Naive, Autopipeline} {
		if path, ok := b.baseline(name); ok && b.URL == "" {
			targets = append(targets, b.serveBaseline(name, path, f.Tasks))
		}
	}
	return targets
}

func (b *Bed) serveBaseline(name, path string, tasks *requests.Tasks) *Target {
	t := &Target{Program: name}
	b.Cleanup(t.Stop)
	args := []string{"--listen", "127.0.0.1:0"}
	if name != Empty {
		t.Redis = b.NewRedis()
		args = append(args, "--redis", t.Redis.URL)
	}
	t.Server = Must(proc.StartServer(b.Ctx, name, path, b.environ(), args...))
	t.Pool = Must(load.DialLight(b.Ctx, t.Address(), b.Connections))
	if name != Empty {
		b.SendOn(t.Pool, "starting tasks on "+name, tasks.Len(), load.Load{Source: tasks.Start})
		t.Tracked = tasks.Len()
	}
	return t
}

// Self runs a baseline that generates its own load, and returns the run that it reports, completed from like; false: it is missing.
func (b *Bed) Self(name string, like report.Run, args ...string) (r report.Run, ok bool) {
	path, ok := b.baseline(name)
	if !ok {
		return r, false
	}
	b.Step("%s %s", name, like.Variant)
	cmd := exec.Command(path, append(args, "--for", b.For.String())...)
	cmd.Env = b.environ()
	child := Must(proc.Start(name, cmd))
	defer child.Stop()
	line := Must(child.Line(b.Ctx, b.For+time.Minute))
	Check(child.Wait(b.Ctx))
	var own struct {
		Ops             int64
		Seconds         float64
		RedisCPUSeconds *float64
	}
	if err := json.Unmarshal([]byte(line), &own); err != nil || own.Ops == 0 {
		Check(fmt.Errorf("%s reports %q and not its operations", name, strings.TrimSpace(line)))
	}
	r = like
	r.Program, r.Loop, r.Seconds, r.Beats = name, report.Closed, own.Seconds, own.Ops
	r.BeatsPerSecond = float64(own.Ops) / own.Seconds
	r.RedisMicros = Known(Of(own.RedisCPUSeconds) * 1e6 / float64(own.Ops))
	return r, true
}

// StartEtcd starts an etcd of one node on loopback, until the end of the scenario; nil: there is none in PATH, which is remarked.
func (b *Bed) StartEtcd() *Target {
	path, err := exec.LookPath("etcd")
	if err != nil {
		b.Remark("there is no etcd in PATH, so it was left out")
		return nil
	}
	dir := Must(os.MkdirTemp("", "lubdub-etcd-"))
	url, peers := fmt.Sprint("http://127.0.0.1:", Must(proc.FreePort())), fmt.Sprint("http://127.0.0.1:", Must(proc.FreePort()))
	cmd := exec.Command(path, "--name", "bench", "--data-dir", dir, "--listen-client-urls", url, "--advertise-client-urls", url,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "bench="+peers)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")} // without the caller's ETCD_… variables
	child := Must(proc.Start("etcd", cmd))
	b.Cleanup(func() { child.Kill(); _ = os.RemoveAll(dir) })
	b.Await(20*time.Second, 50*time.Millisecond, func() (bool, error) {
		text, err := b.get(url + "/health")
		return err == nil && strings.Contains(string(text), "true"), fmt.Errorf("etcd is not ready: %s %w", text, err)
	})
	return &Target{Program: Etcd, Server: &proc.Server{URL: url, Pid: child.Pid}}
}
