// Command naive takes beats the obvious way, written with care: for every request the token is parsed and verified
// (golang-jwt, its signature and all the usual claims), the body is decoded and the answer encoded by encoding/json, and
// one EVALSHA goes to Redis over a connection of go-redis's pool.
//
// It is fair because it gives what Lubdub gives: a verified token for this very attempt, the attempt guard, the progress,
// and a 200 only for what Redis has applied. Its parser, script hash and pool are made once; the pool is as large as
// serves it best.
package main

import (
	"log"
	"os"

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

// poolSize lets 256 beats be on their way at once. Measured with as many clients, it costs a beat a seventh less CPU than
// go-redis's default of 10 a core, where requests queue for a connection.
const poolSize = 256

func newHandler(url, keys string) (fasthttp.RequestHandler, error) {
	verify, err := frontend.Verifier(keys)
	if err != nil {
		return nil, err
	}
	opt, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	opt.PoolSize = poolSize
	return frontend.Handler(verify, redis.NewClient(opt)), nil
}
