// Command naive takes beats the obvious way, written with care: for every request the token is parsed and verified
// (golang-jwt, its signature and all the usual claims), the body is decoded and the answer encoded by encoding/json, and
// one EVALSHA goes to Redis over a connection of go-redis's pool.
//
// It is fair because it gives what Lubdub gives: a verified token for this very attempt, the attempt guard, the progress,
// and a 200 only for what Redis has applied. Its parser, script hash and pool are made once; the pool is as large as
// serves it best.
package main

import (
	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/bench/baselines/internal/frontend"
)

func main() { way.Main() }

// poolSize lets 256 beats be on their way at once. Measured with as many clients, it costs a beat a seventh less CPU than
// go-redis's default of 10 a core, where requests queue for a connection.
const poolSize = 256

var way frontend.Way = func(plain frontend.Verify, opt *redis.Options) (frontend.Verify, redis.Scripter, error) {
	opt.PoolSize = poolSize
	return plain, redis.NewClient(opt), nil
}
