package why

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// ExplainMachine explains a machine.
func ExplainMachine(ctx context.Context, s *session.Session, id string) (*Explanation, error) {
	e, err := resource.Machines.Find(ctx, s, id)
	if err != nil {
		return nil, err
	}
	a, m := &Explanation{parts: map[string]json.RawMessage{"machine": e.Raw}}, e.Value
	a.addf("Machine %s is %s: %s online, %d draining, %d offline. Most recent heartbeat from any worker: %s.", m.MachineID, m.Status,
		output.Count(m.Workers.Online, "worker"), m.Workers.Draining, m.Workers.Offline, timeAndAge(s, m.LastHeartbeatAt))
	flaps := ""
	if m.Flapping {
		flaps = "; it is flapping"
	}
	a.addf("In the last 24 h, or since it was first seen, it had a worker %.1f %% of the time; %s a timeout left it without one%s.",
		m.UptimePct24h, output.Count(m.StaleCount24h, "time"), flaps)
	if m.Drain != nil {
		a.addf("It has been drained since %s%s: workers that register on it get no work until `lubdub machine resume %s`.",
			timeAndAge(s, m.Drain.Since), because(m.Drain.Reason, nil), m.MachineID)
	}
	p, err := resource.Workers.ReadPage(ctx, s, url.Values{"machineId": {m.MachineID}, "sort": {"lastHeartbeat"}, "pageSize": {"20"}})
	if err != nil {
		return nil, err
	}
	a.parts["workers"] = p.List
	a.addf("Its workers, longest silent first:")
	for _, w := range p.Entries {
		state := string(w.Value.Status)
		if w.Value.Status != v1.Offline {
			state += ", " + string(w.Value.Liveness)
		}
		a.addf("  %s%s: %s, last heartbeat %s, holds %d", w.Value.WorkerID, output.Parenthesized(w.Value.Name), state,
			timeAndAge(s, w.Value.LastHeartbeatAt), w.Value.HeldCount)
	}
	if p.Next != "" {
		a.addf("  (the first 20; all: lubdub worker ls -a --machine %s)", m.MachineID)
	}
	return a, a.addEvents(ctx, s, url.Values{"machineId": {m.MachineID}, "type": {"worker.*,machine.*"}}, "--machine "+m.MachineID)
}
