package api

import (
	"encoding/json"
	"fmt"

	"github.com/lubdub-io/lubdub/api/internal/jsonscan"
	v1 "github.com/lubdub-io/lubdub/api/v1"
	"github.com/lubdub-io/lubdub/tracker"
)

// inventory reads the tasks that a worker lists; nil when it lists none at all. Each entry is read as a beat is.
func inventory(tasks []json.RawMessage) ([]tracker.InventoryItem, error) {
	if tasks == nil {
		return nil, nil
	}
	items := make([]tracker.InventoryItem, len(tasks))
	for i, raw := range tasks {
		var b beatBody
		field := func(name string) string { return fmt.Sprintf("tasks[%d].%s", i, name) }
		s := jsonscan.Scanner{Text: raw}
		switch {
		case s.Peek() != '{' || !b.decode(&s, true):
			return nil, invalidField(fmt.Sprintf("tasks[%d]", i), fmt.Sprintf("tasks[%d] is not an object", i))
		case b.seen&fieldTaskID == 0 || !tracker.ValidID(b.taskID):
			return nil, invalidID(field("taskId"))
		}
		if r := b.check(); r != nil {
			return nil, invalidField(field(r.body.Field), fmt.Sprintf("tasks[%d]: %s", i, r.body.Message))
		}
		items[i] = tracker.InventoryItem{
			OwnedAttempt: tracker.OwnedAttempt{TaskID: string(b.taskID), Number: b.attempt},
			Report:       string(tracker.AppendReport(nil, b.reportedMs, nil, b.pct, b.message)),
		}
	}
	return items, nil
}

// notices puts what a worker is told about its attempts into the answer to its beat.
func notices(answer *v1.WorkerHeartbeatResponse, heard *tracker.WorkerHeard) {
	answer.CancelTasks = make([]v1.CancelTask, len(heard.Cancels))
	for i, n := range heard.Cancels {
		answer.CancelTasks[i] = v1.CancelTask{TaskID: n.TaskID, Attempt: n.Attempt, Reason: orNull(n.Reason)}
	}
	answer.LostTasks = make([]v1.LostTask, len(heard.Lost))
	for i, n := range heard.Lost {
		answer.LostTasks[i] = v1.LostTask{TaskID: n.TaskID, Attempt: n.Attempt, Error: string(n.Error)}
	}
}
