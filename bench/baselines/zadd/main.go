// Command zadd is the minimum cost of a beat for Redis: members as long as Lubdub's in one sorted set, and nothing but bulk ZADD XX GT CH
// of random ones, 100 per command; with --progress each command is followed by one HSET of a progress report for each. There is no script,
// no guard beyond XX, no clock and no shard.
//
// The comparison favours this command slightly: all members are in one key, and each round trip is one command for one key, while
// Lubdub's batch is distributed over its shards. As many round trips are under way as in the run that it is compared with, one: a Redis
// that is always busy uses less CPU for each. Only Redis's CPU counts, not that of this program.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const beatsKey, progressKey = "baseline:zadd:beats", "baseline:zadd:progress"

type result struct {
	Ops     int64   `json:"ops"` // members written
	Seconds float64 `json:"seconds"`
	// RedisCPUSeconds is the CPU time that Redis reported in INFO, without filling the set.
	RedisCPUSeconds float64 `json:"redisCpuSeconds"`
}

func main() {
	url := flag.String("redis", "redis://127.0.0.1:6379/0", "`URL` of Redis")
	members := flag.Int("members", 100_000, "members of the set")
	batch := flag.Int("batch", 100, "members a command")
	length := flag.Duration("for", 5*time.Second, "how long to write")
	progress := flag.Bool("progress", false, "one HSET of as many progress reports with each command")
	flag.Parse()
	opt, err := redis.ParseURL(*url)
	if err == nil && (*members < 1 || *batch < 1) {
		err = errors.New("--members and --batch take numbers from 1 on")
	}
	if err != nil {
		log.Fatal(err)
	}
	opt.ReadTimeout = time.Minute // filling and deleting a large set takes time
	client := redis.NewClient(opt)
	r, err := run(context.Background(), client, *members, *batch, *length, *progress)
	if err != nil {
		log.Fatal(err)
	}
	_ = json.NewEncoder(os.Stdout).Encode(r)
}

func run(ctx context.Context, client *redis.Client, members, batch int, length time.Duration, progress bool) (r result, err error) {
	names, reports := names(members), reports()
	if err := fill(ctx, client, names, reports, progress); err != nil {
		return r, err
	}
	before, err := cpuSeconds(ctx, client)
	if err != nil {
		return r, err
	}
	for start := time.Now(); r.Ops == 0 || time.Since(start) < length; {
		if err := write(ctx, client, names, reports, batch, progress); err != nil {
			return r, err
		}
		r.Ops, r.Seconds = r.Ops+int64(batch), time.Since(start).Seconds()
	}
	after, err := cpuSeconds(ctx, client)
	r.RedisCPUSeconds = after - before
	if err == nil {
		err = client.Unlink(ctx, beatsKey, progressKey).Err()
	}
	return r, err
}

// names are boxed once, so that a command costs this program little.
func names(n int) []any {
	const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	all := make([]any, n)
	for i := range all {
		all[i] = fmt.Sprintf("default/default/task_01J%016d%c%c%c%c%c%c%c#1.aB3d", i,
			alphabet[rand.IntN(32)], alphabet[rand.IntN(32)], alphabet[rand.IntN(32)], alphabet[rand.IntN(32)],
			alphabet[rand.IntN(32)], alphabet[rand.IntN(32)], alphabet[rand.IntN(32)])
	}
	rand.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func reports() []any {
	all := make([]any, 101)
	for pct := range all {
		all[pct] = fmt.Sprintf("\tworker-1\t%d\t\"Processing partition 5 of 10\"", pct)
	}
	return all
}

func fill(ctx context.Context, client *redis.Client, names, reports []any, progress bool) error {
	if err := client.Unlink(ctx, beatsKey, progressKey).Err(); err != nil {
		return err
	}
	for len(names) > 0 {
		n := min(len(names), 1000)
		beats, progressArgs := []any{"ZADD", beatsKey}, []any{"HSET", progressKey}
		for i, name := range names[:n] {
			beats, progressArgs = append(beats, 1, name), append(progressArgs, name, reports[i%101])
		}
		if err := client.Do(ctx, beats...).Err(); err != nil {
			return err
		}
		if progress {
			if err := client.Do(ctx, progressArgs...).Err(); err != nil {
				return err
			}
		}
		names = names[n:]
	}
	return nil
}

func write(ctx context.Context, client *redis.Client, names, reports []any, batch int, progress bool) error {
	now := strconv.FormatInt(time.Now().UnixMilli(), 10)
	beats := append(make([]any, 0, 5+2*batch), "ZADD", beatsKey, "XX", "GT", "CH")
	progressArgs := append(make([]any, 0, 2+2*batch), "HSET", progressKey)
	for range batch {
		name := names[rand.IntN(len(names))]
		beats, progressArgs = append(beats, now, name), append(progressArgs, name, reports[rand.IntN(101)])
	}
	if !progress {
		return client.Do(ctx, beats...).Err()
	}
	pipe := client.Pipeline()
	pipe.Do(ctx, beats...)
	pipe.Do(ctx, progressArgs...)
	_, err := pipe.Exec(ctx)
	return err
}

// cpuSeconds returns the CPU time of Redis so far, user and system.
func cpuSeconds(ctx context.Context, client *redis.Client) (sum float64, err error) {
	info, err := client.Info(ctx, "cpu").Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_user" || name == "used_cpu_sys" {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, fmt.Errorf("INFO cpu: %w", err)
			}
			sum += n
		}
	}
	return sum, nil
}
