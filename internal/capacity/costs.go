package capacity

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
)

//go:embed costs.json
var embedded []byte

// Costs were measured on one host. CPU is in µs of one of its cores.
type Costs struct {
	// Source is the report that all values were taken from, or "prototype".
	Source string `json:"source"`
	// Provisional is true for values that no report of this version supports.
	Provisional bool   `json:"provisional,omitempty"`
	Note        string `json:"note,omitempty"`
	Machine     string `json:"machine"`

	// Single and Batch are the cost of a task's heartbeat with progress: in its own request, and in a request with many. Worker is the cost
	// of a worker's heartbeat, however many tasks it holds. If it is null, as in old reports, Single is used.
	Single Cost  `json:"single"`
	Batch  Cost  `json:"batch"`
	Worker *Cost `json:"worker,omitempty"`
	// Progress is the share of a task's heartbeat that its progress costs.
	Progress Share  `json:"progress"`
	Growth   Growth `json:"growth"`
	// FlushMicros is the cost of a round trip for Redis, however few heartbeats it contains.
	FlushMicros float64 `json:"flushMicros"`

	// TaskBytes is the Redis memory of a running task with all its data.
	TaskBytes float64 `json:"taskBytes"`
	// LifeServerMicros and LifeRedisMicros are the cost of the other calls in a task's life: creation, start, completion.
	LifeServerMicros float64 `json:"lifeServerMicros"`
	LifeRedisMicros  float64 `json:"lifeRedisMicros"`
	// DeathsPerSecond is the rate of verdicts on simultaneous deaths, for one Redis server.
	DeathsPerSecond float64 `json:"deathsPerSecond"`

	// Memory of an API replica: at rest, for each cached token, for each connection.
	ReplicaBytes    float64 `json:"replicaBytes"`
	TokenBytes      float64 `json:"tokenBytes"`
	ConnectionBytes float64 `json:"connectionBytes"`
}

// Cost is the cost of one beat when a request contains Beats of them.
type Cost struct {
	Beats int `json:"beats"`
	Share
}

// Share is CPU per beat.
type Share struct {
	ServerMicros float64 `json:"serverMicros"`
	RedisMicros  float64 `json:"redisMicros"`
}

// Growth is the additional cost of a beat with ToTasks compared with FromTasks.
type Growth struct {
	FromTasks int     `json:"fromTasks"`
	ToTasks   int     `json:"toTasks"`
	Server    float64 `json:"server"`
	Redis     float64 `json:"redis"`
}

// Default returns the built-in costs.
func Default() (*Costs, error) { return Parse(embedded) }

// Parse parses costs that 'lubdub-bench costs' has printed.
func Parse(text []byte) (*Costs, error) {
	var c Costs
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("not the output of 'lubdub-bench costs REPORT': %w", err)
	}
	return &c, c.Check()
}

// Check refuses incomplete costs: with a cost of zero the plan would promise a fleet for nothing.
func (c *Costs) Check() error {
	var errs []error
	positive := map[string]float64{
		"single.serverMicros": c.Single.ServerMicros, "single.redisMicros": c.Single.RedisMicros,
		"batch.serverMicros": c.Batch.ServerMicros, "batch.redisMicros": c.Batch.RedisMicros,
		"growth.server": c.Growth.Server, "growth.redis": c.Growth.Redis, "taskBytes": c.TaskBytes, "flushMicros": c.FlushMicros,
		"lifeServerMicros": c.LifeServerMicros, "lifeRedisMicros": c.LifeRedisMicros, "deathsPerSecond": c.DeathsPerSecond,
		"replicaBytes": c.ReplicaBytes, "tokenBytes": c.TokenBytes, "connectionBytes": c.ConnectionBytes,
	}
	if c.Worker != nil {
		positive["worker.serverMicros"], positive["worker.redisMicros"] = c.Worker.ServerMicros, c.Worker.RedisMicros
	}
	for name, v := range positive {
		if !(v > 0) {
			errs = append(errs, fmt.Errorf("%s is %v and must be above 0", name, v))
		}
	}
	if c.Single.Beats != 1 || c.Batch.Beats < 2 || c.Growth.FromTasks < 1 || c.Growth.ToTasks <= c.Growth.FromTasks ||
		c.Progress.ServerMicros < 0 || c.Progress.RedisMicros < 0 || c.Source == "" {
		errs = append(errs, errors.New("single.beats must be 1, batch.beats above 1, growth.toTasks above growth.fromTasks, no share negative, "+
			"and the source named"))
	}
	return errors.Join(errs...)
}
