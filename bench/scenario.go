package bench

import (
	"context"

	"github.com/lubdub-io/lubdub/bench/report"
)

// scenario is one kind of load.
type scenario struct {
	name, title, about string
	needs              need
	run                func(context.Context, *bench, *report.Scenario) error
}

// need is what a scenario cannot do without; each includes those before it.
type need int

const (
	aDeployment need = iota // any, also one that runs elsewhere
	aRedis                  // processes of the benchmark's own, on any Redis
	ownRedis                // Redis processes of its own
)

// scenarios in the order in which they run: those on the many tasks stand together, the deadly ones at the end.
var scenarios []*scenario

func init() { // the functions look into the list
	scenarios = []*scenario{
		{"single", "Single beats", "Closed loop, one beat a request, each connection with tasks of its own in random order. Programs alternate within a round.", aDeployment, runSingle},
	}
}

func find(name string) *scenario {
	for _, s := range scenarios {
		if s.name == name {
			return s
		}
	}
	return nil
}

// Scenario describes one for the list.
type Scenario struct{ Name, Title, About string }

// Scenarios lists what there is.
func Scenarios() (list []Scenario) {
	for _, s := range scenarios {
		list = append(list, Scenario{s.name, s.title, s.about})
	}
	return list
}
