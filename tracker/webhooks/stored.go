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

// definition is the stored form of a webhook's settings, as JSON.
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
		f.MachineID}) // strings: cannot fail
	return string(b)
}

// unpackRecord parses a record in the reply of webhook_read.lua; nil: it does not exist.
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

// Status is the state of a delivery.
type Status string

// A PENDING delivery waits for its first or next try; a DEAD one was given up.
const (
	Pending   Status = "PENDING"
	Delivered Status = "DELIVERED"
	Dead      Status = "DEAD"
)

var statusOf = map[string]Status{"P": Pending, "D": Delivered, "X": Dead}

// Statuses are all statuses.
var Statuses = []Status{Pending, Delivered, Dead}

// Delivery is one message for a webhook.
type Delivery struct {
	ID        string
	MessageID string // its webhook-id header
	EventID   string // "": no event
	Type      string
	Subject   string
	Status    Status
	Tries     int
	CreatedAt time.Time
	NextAt    time.Time // of the next try; zero: none
	LastAt    time.Time // end of the last try; zero: none
	Answer    *Answer   // to the last try; nil: none
}

// Answer is the response to a try.
type Answer struct {
	Code   int    `json:"code,omitempty"`  // 0: no response
	Error  string `json:"error,omitempty"` // why there was none
	Body   string `json:"body,omitempty"`  // its beginning
	TookMs int64  `json:"tookMs"`
}

const deliveryPrefix = "dlv_"

// numberOf returns a delivery's number in scripts; false: the ID is not one of a delivery.
func numberOf(id string) (string, bool) {
	number, ok := strings.CutPrefix(id, deliveryPrefix)
	_, err := strconv.ParseUint(number, 10, 64)
	return number, ok && err == nil && len(number) == 13
}

// unpackDelivery parses the record of a delivery; nil: it is malformed.
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
