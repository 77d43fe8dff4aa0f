package resource

import (
	"fmt"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

var Queues = &Kind[v1.Queue]{
	Noun: "queue", Path: "/v1/queues", Entries: "queues", ID: func(q *v1.Queue) string { return q.Queue }, Unpaged: true,
	Columns: []Column[v1.Queue]{
		{Name: "QUEUE", Cell: func(q *v1.Queue, _ time.Time) output.Cell { return output.Text(q.Queue) }},
		{Name: "PAUSED", Cell: func(q *v1.Queue, _ time.Time) output.Cell { return output.Flag(q.Paused) }},
		{Name: "WAITING", Cell: func(q *v1.Queue, _ time.Time) output.Cell { return output.Number(q.Depth) }},
		{Name: "OLDEST", Volatile: true, Cell: func(q *v1.Queue, _ time.Time) output.Cell {
			if q.OldestWaitMs == nil {
				return output.Cell{}
			}
			return output.Text(output.Milliseconds(*q.OldestWaitMs))
		}},
		{Name: "RUNNING", Cell: func(q *v1.Queue, _ time.Time) output.Cell { return output.Number(q.Running) }},
		{Name: "ONLINE", Cell: func(q *v1.Queue, _ time.Time) output.Cell { return output.Number(q.Workers.Online) }},
		{Name: "DRAINING", Cell: func(q *v1.Queue, _ time.Time) output.Cell { return output.Number(q.Workers.Draining) }},
		{Name: "STUCK", Cell: func(q *v1.Queue, _ time.Time) output.Cell {
			n := unrunnable(q)
			if n == 0 {
				return output.Number(n)
			}
			return output.Cell{Text: fmt.Sprint(n), Mood: output.Bad}
		}},
		{Name: "TYPES", Wide: true, Cell: func(q *v1.Queue, _ time.Time) output.Cell {
			var all []string
			for _, t := range q.Types {
				all = append(all, fmt.Sprintf("%s=%d", output.Optional(t.Type).Text, t.Depth))
			}
			return output.Text(strings.Join(all, ","))
		}},
	}}

// unrunnable is how many tasks of a queue no worker can run, as the API counts them.
func unrunnable(q *v1.Queue) (n int) {
	for _, t := range q.Types {
		n += t.Unrunnable
	}
	return n
}
