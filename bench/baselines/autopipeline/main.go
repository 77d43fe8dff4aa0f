// Command autopipeline receives beats as a careful engineer would implement it with go-redis today: it verifies a token once and caches
// it, and go-redis's AutoPipeline collects the EVALSHA calls of concurrent requests, one for each beat, into pipelines. JSON is
// encoding/json's.
//
// The comparison is fair: it gives the guarantees of Lubdub (a verified token for this attempt, the attempt guard, the progress, and a 200
// only for what Redis has applied), and AutoPipeline runs with its cheapest options.
package main

import (
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/bench/baselines/internal/frontend"
)

func main() { way.Main() }

var way frontend.Way = func(plain frontend.Verify, opt *redis.Options) (frontend.Verify, redis.Scripter, error) {
	pipeline, err := redis.NewClient(opt).AutoPipelineWithOptions(options())
	return remember(plain), pipeline, err
}

// options are the defaults of callers that wait, with the delay that go-redis recommends. Measured with 256 clients,
// it saves a beat some 4 % of its CPU; more concurrent batches, full duplex and other delays cost as much or more, and
// more concurrency a third of the rate.
func options() *redis.AutoPipelineOptions {
	opt := redis.DefaultBlockingAutoPipelineOptions()
	opt.MaxFlushDelay = 100 * time.Microsecond
	return opt
}
