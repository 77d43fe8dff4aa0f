package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lubdub-io/lubdub/internal/sdkrunner"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// play is a case that is played with a runner.
type play struct {
	*server
	process  *process
	deadline <-chan time.Time

	tokenFile, caFile string
}

// perform plays a case and returns what was wrong; fault: what is wrong with the runner.
func perform(c *Case, of sdkrunner.Runner, fault, dir string, limit time.Duration) (problems []string) {
	s, err := newServer(c)
	if err != nil {
		return []string{err.Error()}
	}
	p := &play{server: s, deadline: time.After(limit), tokenFile: filepath.Join(dir, "token"), caFile: filepath.Join(dir, "ca.pem")}
	defer s.http.Close()
	order, err := p.order(fault)
	if err != nil {
		return []string{err.Error()}
	}
	var env []string
	if c.With.Grace > 0 {
		env = append(os.Environ(), fmt.Sprintf("TERMINATION_GRACE_PERIOD_SECONDS=%d", c.With.Grace))
	}
	if p.process, err = start(of, order, env, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.change()
	}); err != nil {
		return []string{err.Error()}
	}
	defer func() {
		if !p.process.over() {
			_ = p.process.cmd.Process.Kill()
			<-p.process.ended
		}
		s.http.CloseClientConnections()
		if len(problems) > 0 {
			problems = append(problems, p.report())
		}
	}()
	for i, d := range c.Script {
		if err := p.do(d); err != nil {
			return append(p.violations(), fmt.Sprintf("deed %d: %v", i+1, err))
		}
	}
	if !p.await(p.process.over) {
		return append(p.violations(), "the runner does not end")
	}
	return append(p.violations(), p.evaluate()...)
}

func (p *play) violations() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(p.heldUnlisted(), p.server.violations...)
}

// order is the first line for the runner.
func (p *play) order(fault string) (map[string]any, error) {
	o := map[string]any{
		"mode": p.Mode, "token": p.controlToken(), "lease": "patient", "queue": "default", "types": []string{"job"}, "name": "conformance",
		"concurrency": p.With.Concurrency, "urls": []string{p.http.URL}, "break": fault,
	}
	if p.With.Lease != "" {
		o["lease"] = p.With.Lease
	}
	if p.With.Default {
		o["default"] = true
	}
	if p.With.Workers > 0 {
		o["workers"] = p.With.Workers
	}
	if p.Mode == "create" {
		o["creations"] = p.Creations
	}
	for name, ms := range map[string]int64{
		"softStopMs": p.With.SoftStopMs, "hardStopMs": p.With.HardStopMs, "taskTimeoutMs": p.With.TaskTimeoutMs, "watchdogMs": p.With.WatchdogMs,
	} {
		if ms > 0 {
			o[name] = ms
		}
	}
	if p.With.TokenFile {
		delete(o, "token")
		o["tokenFile"] = p.tokenFile
		if err := p.writeToken(); err != nil {
			return nil, err
		}
	}
	if p.authority != nil {
		o["caFile"] = p.caFile
		if err := os.WriteFile(p.caFile, p.authority, 0o600); err != nil {
			return nil, err
		}
	}
	if len(p.With.URLs) > 0 {
		var urls []string
		for _, name := range p.With.URLs {
			url := p.http.URL
			if name == "dead" {
				url = "http://127.0.0.1:1" // not a port that was free, since the server of another case may get it
			}
			urls = append(urls, url)
		}
		o["urls"] = urls
	}
	handlers, envelopes := map[string]any{}, []*v1.TaskEnvelope{}
	for id, t := range p.tasks {
		handlers[id] = t.Steps
		if p.Mode == "track" {
			t.assigned = true
			envelopes = append(envelopes, p.envelope(t))
		}
	}
	o["handlers"], o["envelopes"] = handlers, envelopes
	return o, nil
}

func (p *play) writeToken() error {
	other := p.tokenFile + ".new"
	if err := os.WriteFile(other, []byte(p.controlToken()+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(other, p.tokenFile)
}

// await waits until something holds; false: it is too late, or the runner has ended and it will not.
func (p *play) await(holds func() bool) bool {
	for {
		p.mu.Lock()
		changed, over := p.changed, p.process.over()
		p.mu.Unlock()
		if holds() {
			return true
		}
		if over {
			return false
		}
		select {
		case <-changed:
		case <-p.deadline:
			return false
		}
	}
}

// report is what was seen, for people.
func (p *play) report() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := "the exchanges were:\n"
	from := max(0, len(p.exchanges)-60)
	for _, x := range p.exchanges[from:] {
		text += fmt.Sprintf("  %s %-10s %s %v %d %.200s\n", x.at.Format("05.000"), x.call, x.task, x.names, x.status, x.body)
	}
	p.process.mu.Lock()
	defer p.process.mu.Unlock()
	text += "the runner printed:\n"
	for _, e := range p.process.events {
		text += "  " + e.raw + "\n"
	}
	errs := p.process.errs.String()
	return text + "and to stderr:\n" + errs[max(0, len(errs)-4000):]
}
