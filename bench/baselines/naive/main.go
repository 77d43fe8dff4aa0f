// Command naive receives beats in the obvious way, implemented with care: for every request it parses and verifies the token (golang-jwt,
// its signature and all the usual claims), decodes the body and encodes the answer with encoding/json, and sends one EVALSHA to Redis
// over a connection of go-redis's pool.
//
// The comparison is fair: it gives the guarantees of Lubdub (a verified token for this attempt, the attempt guard, the progress, and a 200
// only for what Redis has applied). Its parser, script hash and pool are created once, and the pool has its best size.
package main

import (
	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/bench/baselines/internal/frontend"
)

func main() { way.Main() }

// poolSize allows 256 concurrent beats. Measured with as many clients, a beat costs a seventh less CPU than with go-redis's default of 10
// per core, where requests queue for a connection.
const poolSize = 256

var way frontend.Way = func(plain frontend.Verify, opt *redis.Options) (frontend.Verify, redis.Scripter, error) {
	opt.PoolSize = poolSize
	return plain, redis.NewClient(opt), nil
}
