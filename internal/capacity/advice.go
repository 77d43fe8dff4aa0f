package capacity

import "fmt"

// advise states what limits the deployment first and which settings to use for it.
func (p *Plan) advise(f *Fleet, c *Costs) {
	add := func(format string, args ...any) { p.Advice = append(p.Advice, fmt.Sprintf(format, args...)) }
	memory := p.RedisMemoryBytes / f.RedisMemory
	switch {
	case p.RedisBusiestShare/(1-f.Headroom) >= memory:
		add("What limits first is Redis CPU: the busiest primary has its core %s busy, its memory %s used.", percent(p.RedisBusiestShare),
			percent(memory))
	default:
		add("What limits first is Redis memory: the fullest primary uses %s of it, its core is %s busy.", percent(memory),
			percent(p.RedisBusiestShare))
	}
	if p.Deployments > 1 {
		add("One Redis Cluster of more than %s servers is more than Redis is made for: deal your tenants out to %d deployments.",
			comma(clusterServers), p.Deployments)
	}
	if f.Way == Single && p.APIReplicas > 2 {
		batched := *f
		batched.Way, batched.Together = Batch, c.Batch.Beats
		b := batched.plan(c)
		add("Beats in batches of %d would need %s API cores and %s Redis primaries instead of %s and %s; workers that beat for all they hold "+
			"need less still.",
			c.Batch.Beats, amount(b.APICores), comma(b.RedisPrimaries), amount(p.APICores), comma(p.RedisPrimaries))
	}
	if p.BeatsPerSecond > 100_000 {
		add("An interval twice as long halves the beats, and with them the cores; the timeout grows with it.")
	}
	if p.RedisPrimaries > 1 {
		add("Redis is a Cluster: start Lubdub with --shards %d, which is fixed from then on, and deal the shards' slots out evenly.", p.Shards)
	}
	if p.ConnectionsPerAPI > defaultConnections {
		add("Raise --max-connections to at least %s (and the limit of open files), or put a proxy that shares connections in front.",
			comma(p.ConnectionsPerAPI))
	}
	if f.Way == Worker {
		add("Workers of the Python and TypeScript SDKs hold two connections each: with these alone it is %s connections, %s an API replica. "+
			"Raise --max-connections where that is above %s.", comma(2*p.Connections), comma(2*p.ConnectionsPerAPI),
			comma(int64(defaultConnections)))
		if p.Connections > defaultTenantWorkers {
			add("A tenant may have %s workers by default: raise --tenant-workers to at least %s, or deal the workers out to several tenants.",
				comma(int64(defaultTenantWorkers)), comma(p.Connections))
		}
	}
	switch {
	case p.TokensPerReplica > mostTokens:
		add("A replica meets %s tokens and remembers at most %s, so some are verified again at each beat: plan smaller replicas (--cores), or "+
			"batches.", comma(p.TokensPerReplica), comma(mostTokens))
	case p.TokensPerReplica > defaultTokens:
		add("Raise --token-cache-size to at least %s, so that no token is verified at each beat.", comma(p.TokensPerReplica))
	}
	if p.FlushWaitMs > 50 {
		add("With %s API replicas and %s primaries a beat may wait %s ms for Redis: fewer and larger replicas (--cores), or several deployments "+
			"with their own tenants, shorten that.",
			comma(p.APIReplicas), comma(p.RedisPrimaries), amount(p.FlushWaitMs))
	}
	if f.Way == Worker && c.Worker == nil {
		add("A worker's beat is taken to cost what a task's beat does; it has not been measured.")
	}
}
