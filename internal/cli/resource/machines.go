package resource

import (
	"fmt"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

var Machines = &Kind[v1.Machine]{
	Noun: "machine", Path: "/v1/machines", Entries: "machines", ID: func(m *v1.Machine) string { return m.MachineID },
	Columns: []Column[v1.Machine]{
		{Name: "MACHINE", Cell: func(m *v1.Machine, _ time.Time) output.Cell { return output.Text(m.MachineID) }},
		{Name: "STATUS", Cell: func(m *v1.Machine, _ time.Time) output.Cell { return output.Word(m.Status) }},
		{Name: "ONLINE", Cell: func(m *v1.Machine, _ time.Time) output.Cell { return output.Number(m.Workers.Online) }},
		{Name: "DRAINING", Cell: func(m *v1.Machine, _ time.Time) output.Cell { return output.Number(m.Workers.Draining) }},
		{Name: "OFFLINE", Cell: func(m *v1.Machine, _ time.Time) output.Cell { return output.Number(m.Workers.Offline) }},
		{Name: "BEAT", Volatile: true, Cell: func(m *v1.Machine, now time.Time) output.Cell { return output.Age(m.LastHeartbeatAt.Time, now) }},
		{Name: "UP24H", Volatile: true, Cell: func(m *v1.Machine, _ time.Time) output.Cell {
			return output.Text(fmt.Sprintf("%.1f%%", m.UptimePct24h))
		}},
		{Name: "STALE24H", Cell: func(m *v1.Machine, _ time.Time) output.Cell { return output.Number(m.StaleCount24h) }},
		{Name: "FLAPPING", Cell: func(m *v1.Machine, _ time.Time) output.Cell { return output.Flag(m.Flapping) }},
		{Name: "DRAINED", Volatile: true, Cell: func(m *v1.Machine, now time.Time) output.Cell {
			if m.Drain == nil {
				return output.Cell{}
			}
			return output.Cell{Text: output.Age(m.Drain.Since.Time, now).Text + " ago", Mood: output.Doubtful}
		}},
		{Name: "HELD", Volatile: true, Cell: func(m *v1.Machine, now time.Time) output.Cell { return heldCell(m.Hold, now) }},
		{Name: "REASON", Wide: true, Cell: func(m *v1.Machine, _ time.Time) output.Cell {
			switch {
			case m.Hold != nil:
				return output.Optional(m.Hold.Reason)
			case m.Drain != nil:
				return output.Optional(m.Drain.Reason)
			}
			return output.Cell{}
		}},
	}}

// heldCell shows since when a worker or machine has been held offline.
func heldCell(h *v1.Hold, now time.Time) output.Cell {
	if h == nil {
		return output.Cell{}
	}
	return output.Cell{Text: output.Age(h.Since.Time, now).Text + " ago", Mood: output.Bad}
}
