package webhooks

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// definition is what a record says of a webhook, as JSON.
type definition struct {
	URL         string   `json:"url"`
	Description string   `json:"description,omitempty"`
	Managed     bool     `json:"managed,omitempty"`
	Types       []string `json:"events"`
	Subject     string   `json:"subject,omitempty"`
	RunID       string   `json:"runId,omitempty"`
	Queue       string   `json:"queue,omitempty"`
	TaskType    string   `json:"taskType,omitempty"`
	WorkerID    string   `json:"workerId,omitempty"`
	MachineID   string   `json:"machineId,omitempty"`
}

func packSettings(s *Settings, managed bool) string {
	f := &s.Filter
	b, _ := json.Marshal(definition{s.URL, s.Description, managed, f.Types, f.Subject, f.RunID, f.Queue, f.TaskType, f.WorkerID,
		f.MachineID}) // texts: cannot fail
	return string(b)
}

// unpackRecord reads a record as webhook_read.lua answers it; nil: there is none.
func unpackRecord(scope model.Scope, id string, f map[string]string, pending, dead int) *Webhook {
	if f["d"] == "" {
		return nil
	}
	var d definition
	schema.Unmarshal(f["d"], &d)
	w := &Webhook{
		Scope: scope, ID: id, Managed: d.Managed,
		Settings: Settings{URL: d.URL, Description: d.Description, Enabled: f["e"] == "1", Filter: events.Filter{
			Tenant: scope.Tenant, Workspace: scope.Workspace, Types: d.Types, Subject: d.Subject, RunID: d.RunID, Queue: d.Queue,
			TaskType: d.TaskType, WorkerID: d.WorkerID, MachineID: d.MachineID,
		}},
		CreatedAt: schema.ParseMillis(f["c"]), UpdatedAt: schema.ParseMillis(f["u"]),
		DisabledReason: f["er"], DisabledAt: schema.ParseMillis(f["ea"]), FailingSince: schema.ParseMillis(f["fs"]),
		Pending: pending, Dead: dead, since: schema.ParseMillis(f["sn"]),
	}
	_, bytes, _ := strings.Cut(f["b"], " ")
	w.bytes, w.most = schema.ParseInt(bytes), schema.ParseInt(f["m"])
	for _, s := range unpackSecrets(f["ss"]) {
		if s.until.After(w.OldSecretsUntil) {
			w.OldSecretsUntil = s.until
		}
	}
	return w
}

// Status is how far a delivery has come.
type Status string

// PENDING waits for its first or next try, DEAD was given up.
const (
	Pending   Status = "PENDING"
	Delivered Status = "DELIVERED"
	Dead      Status = "DEAD"
)

var statusOf = map[string]Status{"P": Pending, "D": Delivered, "X": Dead}

// Statuses are all of them.
var Statuses = []Status{Pending, Delivered, Dead}

// Delivery is one message on its way to a webhook.
type Delivery struct {
	ID        string
	MessageID string // the webhook-id that it is sent with
	EventID   string // "": it stands for no event
	Type      string
	Subject   string
	Status    Status
	Tries     int
	CreatedAt time.Time
	NextAt    time.Time // of the next try; zero: there is none
	LastAt    time.Time // when the last one ended; zero: there was none
	Answer    *Answer   // to the last one; nil: there was none
}

// Answer is what came of a try.
type Answer struct {
	Code   int    `json:"code,omitempty"`  // 0: there was no answer
	Error  string `json:"error,omitempty"` // why
	Body   string `json:"body,omitempty"`  // its beginning
	TookMs int64  `json:"tookMs"`
}

const deliveryPrefix = "dlv_"

// numberOf returns a delivery's number as scripts know it; false: it is no id of one.
func numberOf(id string) (string, bool) {
	number, ok := strings.CutPrefix(id, deliveryPrefix)
	_, err := strconv.ParseUint(number, 10, 64)
	return number, ok && err == nil && len(number) == 13
}

// unpackDelivery reads what is kept about a delivery; nil: nothing.
func unpackDelivery(number, about string) *Delivery {
	p := strings.SplitN(about, "\t", 10)
	if len(p) != 10 {
		return nil
	}
	d := &Delivery{
		ID: deliveryPrefix + number, Status: statusOf[p[0]], Tries: schema.Atoi(p[1]), CreatedAt: schema.ParseMillis(p[2]),
		NextAt: schema.ParseMillis(p[3]), LastAt: schema.ParseMillis(p[4]), EventID: p[5], Type: p[6], Subject: p[7], MessageID: p[8],
	}
	if p[9] != "" {
		d.Answer = &Answer{}
		schema.Unmarshal(p[9], d.Answer)
	}
	return d
}
