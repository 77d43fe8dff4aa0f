package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

type statusCmd struct {
	Common `embed:""`
}

func (*statusCmd) Help() string {
	return "Shows silent workers, findings about Lubdub and about your workers, what was lost in the last hour, and what to do. " +
		"Exits with 0 when nothing fails (warnings do not count), with 1 on a failure, and with 5 when the server does not respond."
}

// state is what status asks for.
type state struct {
	Health *v1.Health
	System *v1.System
	Stats  *v1.Stats

	silent   []entry[v1.Worker]
	more     int // silent ones that are not in it
	verdicts *v1.VerdictCounts

	mu  sync.Mutex // answers come at once
	raw map[string]json.RawMessage

	unread   error // why some of it is not known
	responds bool  // Redis does; if not, only Health and System are known
}

func (c *statusCmd) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	st, err := readState(env.Context, s)
	if err != nil {
		return err
	}
	all := st.judged()
	if s.Format.ForPeople() {
		show(s, st, all)
	} else if err := writeWhole(s, st, all); err != nil {
		return err
	}
	if v1.Worst(all) == v1.SeverityFail {
		return errFailed
	}
	return nil
}

// judged is what the server finds, in its order. Here only that is judged which a server cannot tell: that it has not answered.
func (st *state) judged() (all []v1.Finding) {
	if st.unread != nil {
		all = append(all, finding("answers", v1.SeverityFail, "Some answers are missing: "+st.unread.Error(),
			"retry; check Redis with `lubdub doctor`, and docs/runbooks.md"))
	}
	switch {
	case st.System != nil:
		all = append(all, found(st.System)...)
	case st.Health != nil && st.Health.Status != "ok":
		all = append(all, notReady(st.Health))
	}
	return all
}

// readState asks for all of it at once.
func readState(ctx context.Context, s *session) (*state, error) {
	st := &state{raw: map[string]json.RawMessage{}}
	var lost, late *page[v1.Worker]
	asked := []func() error{
		func() (err error) { st.Health, err = health(ctx, s); return err },
		func() error { return st.system(ctx, s) },
		func() error { return st.part(ctx, s, "stats", "/v1/stats", nil, &st.Stats) },
		func() error {
			by := url.Values{"by": {"reason,machineId,version,queue"}}
			return st.part(ctx, s, "verdicts", "/v1/stats/verdicts", by, &st.verdicts)
		},
		func() error { return st.part(ctx, s, "queues", queues.path, nil, new(v1.QueueList)) },
		func() (err error) { lost, err = silentWorkers(ctx, s, "LOST"); return err },
		func() (err error) { late, err = silentWorkers(ctx, s, "LATE"); return err },
	}
	errs := make([]error, len(asked))
	var wait sync.WaitGroup
	for i, ask := range asked {
		wait.Go(func() { errs[i] = ask() })
	}
	wait.Wait()
	for i, err := range errs {
		if err != nil && (i == 0 || ExitCode(err) != ExitUnavailable) {
			return nil, err
		}
		st.unread = cmp.Or(st.unread, err) // the server answers, and cannot reach its store: that is told
	}
	if st.System != nil && !st.responds {
		st.unread = nil // which the server says better
		return st, nil
	}
	for _, p := range []*page[v1.Worker]{lost, late} {
		if p != nil {
			st.silent = append(st.silent, p.entries...)
			st.more += *p.total - len(p.entries)
		}
	}
	return st, nil
}

func (st *state) system(ctx context.Context, s *session) error {
	raw, is, responds, err := readSystem(ctx, s)
	if err != nil {
		return err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.raw["system"], st.System, st.responds = raw, is, responds
	return nil
}

func (st *state) part(ctx context.Context, s *session, name, path string, q url.Values, into any) error {
	raw, err := s.do(ctx, client.Request{Path: path, Query: q})
	if err != nil {
		return err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.raw[name] = raw
	return json.Unmarshal(raw, into)
}

// health asks the server how it is; that it is not well is an answer too.
func health(ctx context.Context, s *session) (*v1.Health, error) {
	h, err := s.client.Healthz(ctx)
	var refused *client.Error
	if errors.As(err, &refused) && refused.Status == http.StatusServiceUnavailable {
		return &v1.Health{Status: "unavailable", Message: refusal(refused).Error()}, nil
	}
	return h, s.explain(err)
}

// silentWorkers are those of a liveness that are not OFFLINE, the longest silent first.
func silentWorkers(ctx context.Context, s *session, liveness string) (*page[v1.Worker], error) {
	sum := &page[v1.Worker]{total: new(int)}
	for _, status := range []string{"ONLINE", "DRAINING"} {
		p, err := workers.page(ctx, s, url.Values{"liveness": {liveness}, "status": {status}, "sort": {"lastHeartbeat"}, "pageSize": {"5"}})
		if err != nil {
			return nil, err
		}
		sum.entries = append(sum.entries, p.entries...)
		if p.total != nil {
			*sum.total += *p.total
		}
	}
	return sum, nil
}

// whole writes the answer for programs: what was found, and the API's own answers that it was found in.
func writeWhole(s *session, st *state, all []v1.Finding) error {
	if s.Format == output.Name {
		_, err := fmt.Fprintln(s.W, v1.Worst(all))
		return err
	}
	silent := []json.RawMessage{}
	for _, e := range st.silent {
		silent = append(silent, e.raw)
	}
	answer := map[string]any{
		"healthy": v1.Worst(all) != v1.SeverityFail, "findings": all, "silent": silent, "health": st.Health,
	}
	for name, raw := range st.raw {
		answer[name] = raw
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return s.Raw(raw)
}

// show answers people.
func show(s *session, st *state, all []v1.Finding) {
	headline := s.Paint(output.Good, "HEALTHY")
	switch v1.Worst(all) {
	case v1.SeverityFail:
		headline = s.Paint(output.Bad, "UNHEALTHY ("+output.Count(of(all, v1.SeverityFail), "failure")+")")
	case v1.SeverityWarn:
		headline = s.Paint(output.Doubtful, "DEGRADED ("+output.Count(of(all, v1.SeverityWarn), "warning")+")")
	}
	fmt.Fprintf(s.W, "%s  %s  %s\n", headline, s.scope(), timeText(v1.At(s.now())))
	heading(s, "Silent workers")
	showSilent(s, st)
	heading(s, "Findings")
	if st.System != nil && st.System.Summary.Title != "" {
		fmt.Fprintf(s.W, "  %s.\n", output.Clean(st.System.Summary.Title))
	}
	showFindings(s, st, all)
	heading(s, "Lost in the last hour")
	showLost(s, st)
	heading(s, "What to do")
	showWhatToDo(s, st, all)
}

// of counts the findings of a severity.
func of(all []v1.Finding, how v1.Severity) (n int) {
	for _, f := range all {
		if f.Severity == how {
			n++
		}
	}
	return n
}

func heading(s *session, text string) { fmt.Fprintf(s.W, "\n%s\n", s.Bold(text)) }

// unknown is shown where an answer is missing.
const unknown = "  Not available now."

func showSilent(s *session, st *state) {
	if st.Stats == nil {
		fmt.Fprintln(s.W, unknown)
		return
	}
	w := st.Stats.Workers
	overdue := "nothing is overdue"
	if st.Stats.OldestOverdueMs > 0 {
		overdue = "the oldest overdue deadline is " + output.Milliseconds(st.Stats.OldestOverdueMs) + " late"
	}
	fmt.Fprintf(s.W, "  %s fresh, %d late, %d lost; %s.\n", output.Count(w.Fresh, "worker"), w.Late, w.Lost, overdue)
	for _, e := range st.silent {
		w := e.T
		fmt.Fprintf(s.W, "  %s %s%s on %s: silent for %s (timeout %s), holds %s\n", s.Paint(output.Word(w.Liveness).Mood, string(w.Liveness)),
			w.WorkerID, output.Aside(w.Name), output.Clean(w.MachineID), silence(w).Text, output.Milliseconds(w.HeartbeatTimeoutMs),
			output.Count(w.HeldCount, "task"))
	}
	if st.more > 0 {
		fmt.Fprintf(s.W, "  and %d more: lubdub worker ls --silent\n", st.more)
	}
}

// findings shows what is not well, failures first, and of a party with which nothing is wrong, that.
func showFindings(s *session, st *state, all []v1.Finding) {
	wrong := map[string]bool{}
	for _, f := range all {
		if f.Severity != v1.SeverityOK {
			wrong[party(&f)] = true
			fmt.Fprintf(s.W, "  %-8s %s %s\n", party(&f)+":", s.Paint(output.SeverityMoods[f.Severity], fmt.Sprintf("%-4s", f.Severity)),
				output.Clean(f.Message))
		}
	}
	for _, who := range []string{"Lubdub", "workers"} {
		switch {
		case wrong[who]:
		case who == "workers" && !st.responds:
			fmt.Fprintln(s.W, "  workers: not available now")
		default:
			fmt.Fprintf(s.W, "  %-8s %s   no problems found", who+":", s.Paint(output.Good, "ok"))
			for _, f := range all {
				if party(&f) == who && (f.Code == "replicas" || f.Code == "shards" || f.Code == "shard-time" || f.Code == "redis-round-trip") {
					fmt.Fprintf(s.W, "; %s", strings.TrimSuffix(output.Clean(f.Message), "."))
				}
			}
			fmt.Fprintln(s.W)
		}
	}
}

// party is what a finding is about: Lubdub with its Redis, or the workers.
func party(f *v1.Finding) string {
	if f.About == v1.Them {
		return "workers"
	}
	return "Lubdub"
}

// mostLostWorkers is how many lost workers are shown.
const mostLostWorkers = 5

func showLostWorkers(s *session, st *state) {
	if st.System == nil || !st.responds {
		return
	}
	lost := st.System.RecentlyLost
	for _, w := range lost[:min(mostLostWorkers, len(lost))] {
		last := "no heartbeat"
		if !w.LastHeartbeatAt.IsZero() {
			last = "last heartbeat " + output.Age(w.LastHeartbeatAt.Time, s.now()).Text + " ago"
		}
		fmt.Fprintf(s.W, "  Worker %s%s on %s (queue %s) lost %s ago (%s), %s: %s", w.WorkerID, output.Aside(w.Name), output.Clean(w.MachineID),
			output.Clean(w.Queue), output.Age(w.LostAt.Time, s.now()).Text, w.Reason, last, output.Count(w.Attempts, "attempt"))
		if w.Attempts > 0 {
			fmt.Fprintf(s.W, ", %d requeued, %d failed, %d out of retries", w.Requeued, w.Failed, w.Exhausted)
		}
		fmt.Fprintln(s.W)
	}
	if more := max(len(lost), st.System.RecentlyLostTotal) - mostLostWorkers; more > 0 {
		fmt.Fprintf(s.W, "  and %d more workers: lubdub status -o json\n", more)
	}
}

// mostLosses is how many groups of losses are told.
const mostLosses = 5

func showLost(s *session, st *state) {
	showLostWorkers(s, st)
	v := st.verdicts
	if v == nil {
		fmt.Fprintln(s.W, unknown)
		return
	}
	if v.Total == 0 && (st.System == nil || len(st.System.RecentlyLost) == 0) {
		fmt.Fprintln(s.W, "  None.")
	}
	if v.Total == 0 {
		return
	}
	fmt.Fprintf(s.W, "  %s ended by Lubdub.\n", output.Count(v.Total, "attempt"))
	for _, g := range v.Groups[:min(mostLosses, len(v.Groups))] {
		where := ""
		for _, part := range []struct {
			name  string
			value *string
		}{{"machine", g.MachineID}, {"version", g.Version}, {"queue", g.Queue}} {
			if part.value != nil && *part.value != "" {
				where += ", " + part.name + " " + output.Clean(*part.value)
			}
		}
		fmt.Fprintf(s.W, "  %5d  %s%s, the last %s ago\n", g.Count, output.Optional(g.Reason).Text, where, output.Age(g.LastAt.Time,
			s.now()).Text)
	}
	if more := len(v.Groups) - mostLosses; more > 0 {
		fmt.Fprintf(s.W, "  and %d more groups: lubdub status -o json\n", more)
	}
}

func showWhatToDo(s *session, st *state, all []v1.Finding) {
	shown := 0
	for _, f := range all {
		if f.Remedy != "" {
			shown++
			fmt.Fprintf(s.W, "  - %s: %s\n", f.Code, f.Remedy)
		}
	}
	if len(st.silent) > 0 {
		shown++
		fmt.Fprintf(s.W, "  - lubdub why %s\n", st.silent[0].T.WorkerID)
	}
	if st.verdicts != nil && st.verdicts.Total > 0 {
		shown++
		retry := "lubdub task retry"
		if !s.token.mayOperate() {
			retry = "ask an operator to retry them"
		}
		fmt.Fprintf(s.W, "  - lubdub task ls --state failed --since 1h, then lubdub why of one of them; %s when the cause is fixed\n", retry)
	}
	if shown == 0 {
		fmt.Fprintln(s.W, "  Nothing.")
	}
}
