// Command autopipeline takes beats as a careful engineer would with what go-redis offers today: a token is verified once
// and remembered, and go-redis's AutoPipeline gathers the EVALSHA calls of concurrent requests, one for each beat, into
// pipelines. JSON is encoding/json's.
//
// It is fair because it gives what Lubdub gives: a verified token for this very attempt, the attempt guard, the progress,
// and a 200 only for what Redis has applied; and because AutoPipeline runs with the options that cost it least.
package main

import (
	"log"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/bench/baselines/internal/frontend"
)

func main() {
	flags := frontend.Parse()
	handler, err := newHandler(flags.Redis, os.Getenv("LUBDUB_SIGNING_KEYS"))
	if err != nil {
		log.Fatal(err)
	}
	frontend.Serve(flags.Listen, handler)
}

func newHandler(url, keys string) (fasthttp.RequestHandler, error) {
	verify, err := frontend.Verifier(keys)
	if err != nil {
		return nil, err
	}
	opt, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	pipeline, err := redis.NewClient(opt).AutoPipelineWithOptions(options())
	if err != nil {
		return nil, err
	}
	return frontend.Handler(remember(verify), pipeline), nil
}

// options are the defaults of callers that wait, with the delay that go-redis recommends. Measured with 256 clients,
// it saves a beat some 4 % of its CPU; more concurrent batches, full duplex and other delays cost as much or more, and
// more concurrency a third of the rate.
func options() *redis.AutoPipelineOptions {
	opt := redis.DefaultBlockingAutoPipelineOptions()
	opt.MaxFlushDelay = 100 * time.Microsecond
	return opt
}
