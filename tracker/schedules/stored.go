package schedules

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// storedTask is the specification of a schedule's tasks, as JSON, without payload and resources, which are stored separately.
// Times are ms. The names are part of the stored format.
type storedTask struct {
	Run               string            `json:"run,omitempty"`
	Key               string            `json:"key,omitempty"`
	Asset             string            `json:"asset,omitempty"`
	Type              string            `json:"type,omitempty"`
	Queue             string            `json:"queue"`
	Runtime           string            `json:"runtime,omitempty"`
	WorkerLabels      map[string]string `json:"workerLabels,omitempty"`
	Worker            string            `json:"worker,omitempty"`
	Placement         string            `json:"placement,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	StartTimeout      int64             `json:"startTimeout,omitempty"`
	RunTimeout        int64             `json:"runTimeout,omitempty"`
	HeartbeatInterval int64             `json:"heartbeatInterval,omitempty"`
	HeartbeatTimeout  int64             `json:"heartbeatTimeout,omitempty"`
	CancelGrace       int64             `json:"cancelGrace,omitempty"`
	TokenTTL          int64             `json:"tokenTTL,omitempty"`
	NoRenewToken      bool              `json:"noRenewToken,omitempty"`
	Retry             string            `json:"retry,omitempty"`
}

// packTask encodes a task without its payload and resources.
func packTask(n *model.NewTask) string {
	t := storedTask{
		Run: n.RunID, Key: n.Key, Asset: n.Asset, Type: n.Type, Queue: n.Queue, Runtime: n.Runtime, WorkerLabels: n.WorkerLabels,
		Worker: n.WorkerID, Placement: n.Placement, Labels: n.Labels, StartTimeout: model.Millis(n.StartTimeout),
		RunTimeout: model.Millis(n.RunTimeout), HeartbeatInterval: model.Millis(n.HeartbeatInterval),
		HeartbeatTimeout: model.Millis(n.HeartbeatTimeout), CancelGrace: model.Millis(n.CancelGrace), TokenTTL: model.Millis(n.TokenTTL),
		NoRenewToken: n.NoRenewToken,
	}
	if n.Retry != nil {
		t.Retry = schema.PackPolicy(n.Retry)
	}
	b, _ := json.Marshal(t) // cannot fail for texts and numbers
	return string(b)
}

// definition is the whole definition of a schedule, in a comparable form.
type definition struct {
	cron                     string
	skipOverlap              bool
	maxCatchup               int
	task, payload, resources string
}

func (d *Spec) definition() definition {
	return definition{d.Cron, d.SkipOverlap, d.MaxCatchup, packTask(&d.Task), string(d.Task.Payload), string(d.Task.Resources)}
}

// unpackTask reads the parts of a task in the reply of schedule_read.lua.
func unpackTask(scope model.Scope, parts []string) model.NewTask {
	var t storedTask
	if len(parts) > 0 {
		schema.Unmarshal(parts[0], &t)
	}
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	n := model.NewTask{
		Scope: scope, RunID: t.Run, Key: t.Key, Asset: t.Asset, Type: t.Type, Queue: t.Queue, Runtime: t.Runtime,
		WorkerLabels: t.WorkerLabels, WorkerID: t.Worker, Placement: t.Placement, Labels: t.Labels, StartTimeout: ms(t.StartTimeout),
		RunTimeout: ms(t.RunTimeout), HeartbeatInterval: ms(t.HeartbeatInterval), HeartbeatTimeout: ms(t.HeartbeatTimeout),
		CancelGrace: ms(t.CancelGrace), TokenTTL: ms(t.TokenTTL), NoRenewToken: t.NoRenewToken,
	}
	if t.Retry != "" {
		n.Retry = schema.UnpackPolicy(t.Retry)
	}
	if len(parts) == 3 {
		n.Payload, n.Resources = schema.Raw(parts[1]), schema.Raw(parts[2])
	}
	return n
}

// readSchedule reads a record; nil: there is none.
func readSchedule(r ref, re scheduleReply) *Schedule {
	f := re.fields
	if len(f) == 0 {
		return nil
	}
	s := &Schedule{
		Spec: Spec{
			Scope: r.scope, ID: r.id, Cron: f[schema.ScheduleCron], SkipOverlap: f[schema.ScheduleOverlap] != "",
			MaxCatchup: schema.Atoi(f[schema.ScheduleMaxCatchup]), Task: unpackTask(r.scope, re.task),
		},
		PausedAt: schema.ParseMillis(f[schema.SchedulePaused]), CreatedAt: schema.ParseMillis(f[schema.ScheduleCreated]),
		ChangedAt: schema.ParseMillis(f[schema.ScheduleChanged]), Last: schema.ParseMillis(f[schema.ScheduleLast]),
		Fires: schema.ParseInt(f[schema.ScheduleFires]), Skipped: schema.ParseInt(f[schema.ScheduleSkipped]), Waiting: re.count,
		version: f[schema.ScheduleVersion], resumed: schema.ParseMillis(f[schema.ScheduleResumed]), task: f[schema.ScheduleLastTask],
		decided: f[schema.ScheduleDecided], bytes: schema.Atoi(f[schema.ScheduleSize]),
		backoff: time.Duration(schema.ParseInt(f[schema.ScheduleBackoff])) * time.Millisecond,
		named:   schema.ParseMillis(f[schema.ScheduleNamed]),
	}
	if len(re.task) == 0 { // the part of its tasks that the record has
		s.Task.Queue, s.Task.Type = f[schema.ScheduleQueue], f[schema.ScheduleType]
	}
	for _, text := range re.fired {
		if fire, ok := parseFired(text); ok {
			s.Recent = append(s.Recent, fire)
		}
	}
	return s
}

// A fire that waits for its task: its time, wall ms in 13 digits, and the letter of its kind.
type waiting struct {
	text string // as it is stored
	at   time.Time
	kind Kind
}

var (
	kinds    = map[string]Kind{"s": ByTime, "m": Manual, "b": Backfill}
	outcomes = map[string]Outcome{"c": Created, "o": Skipped, "r": Refused}
)

func millisText(at time.Time) string { return fmt.Sprintf("%013d", at.UnixMilli()) }

func parseWaiting(text string) (waiting, bool) {
	ms, letter, _ := strings.Cut(text, "/")
	kind, ok := kinds[letter]
	return waiting{text, time.UnixMilli(schema.ParseInt(ms)).UTC(), kind}, ok
}

// parseFired reads an entry that pack_fired in lua/lib/schedule.lua packed.
func parseFired(text string) (Fire, bool) {
	p := strings.Split(text, schema.PackSep)
	if len(p) != 5 {
		return Fire{}, false
	}
	f := Fire{
		At: time.UnixMilli(schema.ParseInt(p[0])).UTC(), Kind: kinds[p[1]], Outcome: outcomes[p[2]], NotedAt: schema.ParseMillis(p[4]),
	}
	if f.Outcome == Refused {
		f.Error = p[3]
	} else {
		f.TaskID = p[3]
	}
	return f, f.Kind != "" && f.Outcome != ""
}
