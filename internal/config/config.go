package config

import (
	"time"
)

// Config is every setting of a process. A field's tags are read by this package and by kong alike:
//
//	name     of the flag and of the YAML key; LUBDUB_ and the name in capitals is the variable
//	group    under which help and reference list it
//	default  as it would be written in the file
//	min, max inclusive bounds; enum: the only values allowed
//	zero     what 0 or the empty value means
//	secret   url: a password inside it is hidden when printed; all: the whole value is
//	source   env: may only come from the environment
type Config struct {
	Redis           string        `name:"redis" type:"setting" group:"Redis" default:"redis://127.0.0.1:6379/0" placeholder:"URL" secret:"url" zero:"refused" help:"Where Redis is: a redis://, rediss:// or unix:// URL, redis+cluster://host:port,… for a Cluster, redis+sentinel://host:port,…/<master> for Sentinel, or 'embedded' for one inside this process, to try Lubdub without any."`
	RedisTimeout    time.Duration `name:"redis-timeout" type:"setting" group:"Redis" default:"1s" min:"50ms" max:"1m" zero:"refused" help:"Longest wait for one round trip to Redis before its callers are told 503."`
	Shards          int           `name:"shards" type:"setting" group:"Redis" default:"0" min:"0" max:"4096" zero:"what the deployment was first started with, else 4, 64 on a Cluster, 2 in an embedded Redis" help:"Slices of the keyspace. Fixed when a deployment is first started; another number is refused later."`
	HealthCheck     time.Duration `name:"health-check-period" type:"setting" group:"Redis" default:"15s" min:"0s" max:"10m" zero:"no balancer: time runs again at once" help:"Longest time that the balancers in front of the replicas take to send clients to one that is well again: interval times successes of health checks, or for how long a failure counts. While Redis or all replicas were away, or draining, and for so long after it, shard time is held, so that no live client that is not let through yet dies of it; the dead are found so much later then. No more than the longest timeout in use counts."`
	FinishedRetain  time.Duration `name:"finished-retention" type:"setting" group:"Redis" default:"24h" min:"2h5m" max:"8760h" zero:"refused" help:"How long finished tasks can still be read. The lower bound is the longest token life plus 5 minutes."`
	EventsPerShard  int           `name:"events-per-shard" type:"setting" group:"Redis" default:"0" min:"0" max:"1000000" zero:"10,000, and where there are fewer than 16 shards as many as 16 keep together: 40,000 of 4; 10,000 in an embedded Redis" help:"Events that each shard keeps, the newest, and up to a hundred more; at least 100. Each takes a few hundred bytes of Redis. A transition writes one or two: 160,000 in all shards together are some 20 s at 5,000 transitions a second. Sweepers drop older ones, and leave what webhooks have not taken yet, up to four times as many. Give it to every process: each trims to its own."`
	EventsMaxAge    time.Duration `name:"events-max-age" type:"setting" group:"Redis" default:"24h" min:"0s" max:"8760h" zero:"no limit by age" help:"How long a shard keeps its events, where there are not more of them than events-per-shard. Its newest one stays."`
	Durability      string        `name:"durability" type:"setting" group:"Redis" default:"memory" enum:"memory,fsync,replicated" zero:"refused" help:"What an acknowledged creation, completion, new attempt or cancel outlives: 'memory' what Redis is configured for, 'fsync' a crash of its server, 'replicated' a failover. What Redis does not confirm in half of redis-timeout is answered 503, and confirmed when it is sent again. docs/operations.md tells what each needs."`
	DurableReplicas int           `name:"durable-replicas" type:"setting" group:"Redis" default:"1" min:"1" max:"16" zero:"refused" help:"With durability replicated: how many replicas of a Redis server must have a change before it is acknowledged."`
	MaxPendingBeats int           `name:"max-pending-beats" type:"setting" group:"Redis" default:"65536" min:"1" max:"16777216" zero:"refused" help:"Heartbeats that may wait for Redis, per Redis node; 1024 at most with an embedded one. One more is answered 503 with Retry-After at once."`
	MaxPendingCalls int           `name:"max-pending-calls" type:"setting" group:"Redis" default:"8192" min:"1" max:"1048576" zero:"refused" help:"Other calls that may wait for Redis, per Redis node; 256 at most with an embedded one. One more is answered 503 with Retry-After at once."`

	Listen          string        `name:"listen" type:"setting" group:"HTTP" default:"127.0.0.1:8080" placeholder:"HOST:PORT" zero:"refused" help:"Address of the API. Port 0 takes a free one; an empty host means every interface."`
	AdminListen     string        `name:"admin-listen" type:"setting" group:"HTTP" default:"127.0.0.1:9090" placeholder:"HOST:PORT" zero:"refused" help:"Address of metrics, profiles and health pages. It asks for no token, so keep it on loopback or a private network."`
	AdminHosts      string        `name:"admin-hosts" type:"setting" group:"HTTP" default:"" placeholder:"NAMES" zero:"addresses, localhost and the host of admin-listen only" help:"Names under which the admin listener may be asked, separated by commas, such as lubdub-admin,metrics.internal. A request for another name is refused with 421, so that no page in an operator's browser can read it by pointing a name of its own there."`
	PublicURL       string        `name:"public-url" type:"setting" group:"HTTP" default:"" placeholder:"URL" zero:"http:// and the address of the API listener" help:"Base URL under which workers reach the API; envelopes carry it as callbackBaseUrl."`
	BasePath        string        `name:"base-path" type:"setting" group:"HTTP" default:"" placeholder:"PATH" zero:"the server has its host to itself" help:"Path below which a proxy shows the server, such as /lubdub. Requests may come with it or without; links in answers, the documentation and the dashboard carry it, and callbackBaseUrl too where public-url is not set."`
	MaxConnections  int           `name:"max-connections" type:"setting" group:"HTTP" default:"16384" min:"1" max:"1048576" zero:"refused" help:"Connections that the API listener holds at a time. For one more the one goes that has been idle longest without having shown a valid token; where there is none, it is answered 503 with Retry-After. Lowered at the start, with a warning, to what the limit of open files (ulimit -n) leaves room for."`
	TokenCacheSize  int           `name:"token-cache-size" type:"setting" group:"HTTP" default:"262144" min:"1" max:"16777216" zero:"refused" help:"Verified tokens that are remembered until they expire, about 1.5 KB each, so that a request need not verify its own again. Rounded up to a power of two."`
	MaxControl      int           `name:"max-control-requests" type:"setting" group:"HTTP" default:"1024" min:"1" max:"1048576" zero:"refused" help:"Requests of the control plane (creations, lists, claims that do not wait, and the like) that may be under way at a time. One more is answered 503 with Retry-After at once, so that heartbeats keep their room."`
	MaxStreams      int           `name:"max-event-streams" type:"setting" group:"HTTP" default:"1024" min:"1" max:"1048576" zero:"refused" help:"Streams of events that this replica serves at a time. Each takes one of max-connections and a few KB; one more is answered 503 with Retry-After."`
	MaxBodyBytes    int           `name:"max-body-bytes" type:"setting" group:"HTTP" default:"268435456" min:"4194304" max:"1099511627776" zero:"refused" help:"Memory that request bodies above 16 KiB may take at a time, as their headers announce them. One more is answered 503 with Retry-After."`
	EventLoop       string        `name:"event-loop" type:"setting" group:"HTTP" default:"true" enum:"true,false" zero:"refused" help:"Whether heartbeats are served by event loops, which need no goroutine for a connection and put what comes together into one call of Redis; everything else has a goroutine while it is answered. They need Linux, and are not used with tls-cert-file: there, and with 'false', every connection has a goroutine of its own. What is answered is the same."`
	EventLoops      int           `name:"event-loops" type:"setting" group:"HTTP" default:"0" min:"0" max:"256" zero:"one for every eight cores, at least one" help:"How many event loops share the connections. What one loop brings together, two send in halves: more than one pays where a loop has a core to itself and is busy."`
	BeatPace        time.Duration `name:"beat-pace" type:"setting" group:"HTTP" default:"1ms" min:"0s" max:"100ms" zero:"no pace: what comes is read at once" help:"Least time between two turns of an event loop that has something to do but is not full, so that one turn serves many heartbeats: each may take up to twice as much longer for it. A loop with little to do adds nothing."`
	TenantBeats     int           `name:"tenant-beats-per-second" type:"setting" group:"HTTP" default:"0" min:"0" max:"10000000" zero:"no limit" help:"Heartbeats and other callbacks that this replica takes of one tenant a second, each beat of a batch and each entry of an inventory counted; what one second allows may come at once. More is answered 429 with Retry-After."`
	TenantCalls     int           `name:"tenant-calls-per-second" type:"setting" group:"HTTP" default:"0" min:"0" max:"10000000" zero:"no limit" help:"The same for everything else that takes a token: creations, each of a batch counted, lists, claims and the like."`
	TenantTasks     int           `name:"tenant-live-tasks" type:"setting" group:"HTTP" default:"0" min:"0" max:"1000000000000" zero:"no limit" help:"Tasks that one tenant may have over all its workspaces that are not finished; with n replicas up to what n - 1 of them create in a second more. A creation beyond is answered 429, repeats of earlier ones are not. Give it to every process."`
	TenantBytes     int           `name:"tenant-stored-bytes" type:"setting" group:"HTTP" default:"0" min:"0" max:"1000000000000000" zero:"no limit" help:"Bytes that the tasks of one tenant may take over all its workspaces, finished ones included: 1 KiB each, and payloads, labels, results and histories where these come to more. Counted to within a tenth, else as tenant-live-tasks."`
	TenantWorkers   int           `name:"tenant-workers" type:"setting" group:"HTTP" default:"10000" min:"0" max:"1000000000" zero:"no limit" help:"Workers of one tenant that are not OFFLINE, over all its workspaces. One more is answered 429; one that takes another's place is not one more."`
	SigningKeys     string        `kong:"-" name:"signing-keys" group:"Tokens" default:"" secret:"all" source:"env" zero:"none here; signing-keys-file may name some" help:"Keys that sign and verify tokens: <kid>=<base64 of at least 32 bytes>, separated by commas. The first signs, all verify."`
	SigningKeysFile string        `name:"signing-keys-file" type:"setting" group:"Tokens" default:"" placeholder:"FILE" zero:"none; LUBDUB_SIGNING_KEYS may hold some" help:"File with the keys that sign and verify tokens, one a line as <kid>=<base64 of at least 32 bytes>. Set this or LUBDUB_SIGNING_KEYS, not both."`

	TLSCert     string `name:"tls-cert-file" type:"setting" group:"TLS" default:"" placeholder:"FILE" zero:"the listeners speak plain HTTP" help:"Certificate of the API listener in PEM, with the chain behind it. It then speaks TLS 1.2 or newer only. Changed files are read again by themselves."`
	TLSKey      string `name:"tls-key-file" type:"setting" group:"TLS" default:"" placeholder:"FILE" zero:"none" help:"Key of that certificate in PEM."`
	TLSClientCA string `name:"tls-client-ca-file" type:"setting" group:"TLS" default:"" placeholder:"FILE" zero:"clients need no certificate" help:"Certificates in PEM of which clients must show one that was signed by them, besides their token."`
	AdminTLS    string `name:"admin-tls" type:"setting" group:"TLS" default:"off" enum:"off,on" zero:"refused" help:"Whether the admin listener speaks TLS too, with the same files."`
	RedisCA     string `name:"redis-tls-ca-file" type:"setting" group:"TLS" default:"" placeholder:"FILE" zero:"those of the system" help:"Certificates in PEM that Redis's own must be signed by, where its URL begins with rediss."`
	RedisCert   string `name:"redis-tls-cert-file" type:"setting" group:"TLS" default:"" placeholder:"FILE" zero:"none" help:"Certificate in PEM that is shown to Redis. Changed files are read again by themselves."`
	RedisKey    string `name:"redis-tls-key-file" type:"setting" group:"TLS" default:"" placeholder:"FILE" zero:"none" help:"Key of that certificate in PEM."`
	RedisName   string `name:"redis-tls-server-name" type:"setting" group:"TLS" default:"" placeholder:"NAME" zero:"the host that is dialled" help:"Name that Redis's certificate must be for."`

	WorkerInterval   time.Duration `name:"worker-heartbeat-interval" type:"setting" group:"Workers" default:"10s" min:"100ms" max:"1h" zero:"refused" help:"How often workers are told to beat."`
	WorkerMultiplier int           `name:"worker-timeout-multiplier" type:"setting" group:"Workers" default:"3" min:"2" max:"100" zero:"refused" help:"How many intervals a worker may be silent before it is OFFLINE and its tasks go to others. Together they must come to at least 1s."`
	MaxBeats         int           `name:"max-beats-per-second" type:"setting" group:"Workers" default:"0" min:"0" max:"1000000" zero:"no ceiling" help:"Beats per second of all workers together. More workers than fit are told to beat less often; their timeouts keep their multiple."`
	OfflineRetain    time.Duration `name:"offline-worker-retention" type:"setting" group:"Workers" default:"24h" min:"2h5m" max:"8760h" zero:"refused" help:"How long OFFLINE workers can still be read. The lower bound is twice the life of a worker's token plus 5 minutes."`
	WorkerProbe      string        `name:"worker-probe" type:"setting" group:"Workers" default:"off" enum:"off,public,any" zero:"refused" help:"Whether a late worker's probeUrl is asked before the worker is declared dead: off, only at public addresses, or at any address but link-local ones and those where clouds answer for a machine, such as 169.254.169.254. Whoever may register workers chooses what is asked, so 'any' lets them reach your private network. Addresses are judged when they are dialled, and redirects are not followed."`

	MassExpiryBrake string `name:"mass-expiry-brake" type:"setting" group:"Sweeping" default:"off" enum:"off,on" zero:"refused" help:"Whether tasks and workers are given one more timeout, once, when so much of a tenant's workspace goes silent together that a deaf front end or a cut network is likelier than as many deaths. It delays true verdicts by one timeout then. Give it to every process."`
	MassExpiryShare int    `name:"mass-expiry-share" type:"setting" group:"Sweeping" default:"50" min:"1" max:"100" zero:"refused" help:"Percentage of a workspace's running tasks, or of its workers, that must be silent for six tenths of their timeouts for the brake to hold; never fewer than 50 of them."`
	ReconcileRate   int    `name:"reconcile-rate" type:"setting" group:"Sweeping" default:"250" min:"0" max:"1000000" zero:"no reconciler" help:"Entries a second that the sweepers together hold against the tasks' and workers' records, to repair what a store lost. Each costs Redis about 25 µs, so the default stays below one percent of a core."`

	MaxSchedules int `name:"max-schedules" type:"setting" group:"Schedules" default:"10000" min:"1" max:"1000000" zero:"refused" help:"Schedules that one tenant may have, over all its workspaces; creations that are under way together may come to a few more. One beyond is answered 429. Give it to every process."`
	MaxFires     int `name:"max-fires-per-tick" type:"setting" group:"Schedules" default:"1000" min:"1" max:"100000" zero:"refused" help:"Fires of schedules for which this sweeper creates tasks in one second, a hundred at a time. What is more waits for the next second, so that schedules that come back together after an outage stampede nobody."`

	WebhookHTTP  string `name:"webhook-allow-http" type:"setting" group:"Webhooks" default:"off" enum:"off,on" zero:"refused" help:"Whether webhooks may be http URLs too, whose messages others can read on their way. Give it, and the two below, to every process."`
	WebhookCIDRs string `name:"webhook-allow-cidrs" type:"setting" group:"Webhooks" default:"" placeholder:"RANGES" zero:"public addresses only" help:"Ranges of addresses that webhooks may call though they are not public, separated by commas, such as 10.1.2.0/24. Whoever may make webhooks reaches what is there."`
	WebhookBytes int    `name:"tenant-webhook-bytes" type:"setting" group:"Webhooks" default:"67108864" min:"33554432" max:"1099511627776" zero:"refused" help:"Bytes of Redis that the deliveries of one tenant's webhooks may take over all its workspaces, some 900 bytes each and up to 13 KB with the longest names and messages. It is divided evenly among the tenant's webhooks. One that is full drops its oldest deliveries, reported by a webhook.gap to it and by an event webhook.dropped. Give it to every process."`
	WebhooksFile string `name:"webhooks-file" type:"setting" group:"Webhooks" default:"" placeholder:"FILE" zero:"none" help:"YAML list of webhooks that this deployment has, each with id, url, events and secret or secretFile, and tenantId, workspaceId, description and what events are filtered by. At the start those listed are made or changed and those that were listed before are deleted. Give it to every process or to none."`

	Roles           Roles         `name:"roles" type:"setting" group:"Process" default:"api,sweeper" placeholder:"ROLES" zero:"refused" help:"What this process does: api answers HTTP, sweeper finds the silent and the overdue. Run any number of each."`
	DrainDelay      time.Duration `name:"drain-delay" type:"setting" group:"Process" default:"0s" min:"0s" max:"10m" zero:"no wait" help:"At a stop: how long to go on serving with readiness off, until load balancers have noticed."`
	ShutdownTimeout time.Duration `name:"shutdown-timeout" type:"setting" group:"Process" default:"20s" min:"1s" max:"1h" zero:"refused" help:"At a stop: longest wait for running requests and for the last heartbeats to reach Redis."`
	LogLevel        string        `name:"log-level" type:"setting" group:"Process" default:"info" enum:"debug,info,warn,error" zero:"refused" help:"Least important message that is logged."`
	LogFormat       string        `name:"log-format" type:"setting" group:"Process" default:"text" enum:"text,json" zero:"refused" help:"How log lines on standard error are written."`
}

// Embedded is the value of Config.Redis that asks for a Redis inside the process.
const Embedded = "embedded"

// Default returns the configuration of a process that was given no settings.
func Default() *Config {
	c := &Config{}
	for _, f := range Fields() {
		if err := f.set(c, f.Default); err != nil {
			panic("config: bad default: " + err.Error()) // a mistake in a tag, which a test finds
		}
	}
	return c
}
