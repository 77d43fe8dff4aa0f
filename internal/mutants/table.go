package main

// mutant is one wrong edit and the tests that must notice it.
type mutant struct {
	bug     string // what is wrong with it
	file    string // under the root of the repository
	find    string // stands in the file exactly once
	replace string
	pkg     string // whose tests run
	tests   string // regular expression for -test.run
}

const (
	ofTracker = "./tracker"
	ofAPI     = "./api"
	ofToken   = "./api/token"
)

var mutants = []mutant{
	{"beats revive ended attempts (membership guard removed)", "lua/beats/beat.lua", "'XX', 'GT', 'CH'", "'GT', 'CH'", ofTracker,
		"^(TestZombie|TestLifecycle)$"},
	{"a score may fall (GT dropped)", "lua/beats/beat.lua", "'XX', 'GT', 'CH'", "'XX', 'CH'", ofTracker,
		"^TestScoresNeverFallWithARestoredClock$"},
	{"a `started` may let a score fall (GT dropped)", "lua/beats/start.lua", "redis.call('ZADD', task.beats, 'GT', L, member)",
		"redis.call('ZADD', task.beats, L, member)", ofTracker, "^TestScoresNeverFallWithARestoredClock$"},
	{"the fence is not compared", "lua/lib/attempt.lua", "if attempt < f.a or f.f ~= fence then", "if attempt < f.a then", ofTracker,
		"^TestFence$"},
	{"an older attempt is let in (attempt guard removed)", "lua/lib/attempt.lua", "if attempt < f.a or f.f ~= fence then",
		"if attempt > f.a then", ofTracker, "^(TestFence|TestLifecycle|TestRetries)$"},
	{"a newer attempt that the store lost is refused", "lua/lib/attempt.lua", "return not task.f or token.attempt > task.f.a end",
		"return not task.f end", ofTracker, "^TestAdoption$"},
	{"a zombie's score is not checked again", "lua/sweep/expire.lua", "if score and L - score > timeout then", "if score then", ofTracker,
		"^TestBeatBetweenFindAndTake$"},
	{"zombies are found one timeout late", "lua/sweep/expire.lua", "if score and L - score > timeout then",
		"if score and L - score > 2 * timeout then", ofTracker, "^TestZombie$"},
	{"a look at what is overdue has no limit", "lua/holdings/find.lua", ", 'LIMIT', ARGV[5] or 0, ARGV[4])}", ")}", ofTracker,
		"^TestALookAtWhatIsOverdueIsBounded$"},
	{"liveness goes by wall time, not shard time", "lua/lib/clock.lua", "  L = L + ran\n", "  L = now\n", ofTracker,
		"^TestOutageKillsNobody$"},
	{"shard time follows a gap of any length", "lua/lib/clock.lua", "math.max(0, math.min(gap, MAX_STEP_MS))", "math.max(0, gap)", ofTracker,
		"^TestOutageKillsNobody$"},
	{"a replica that drains holds everybody's time", "lua/lib/cutoff.lua", "return names, marks == #names", "return names, marks > 0",
		ofTracker, "^TestTimeIsHeldWhileEveryReplicaIsNotReady$"},
	{"time is held for balancers for ever", "lua/lib/cutoff.lua", "local MAX_SLOWED = 4 ", "local MAX_SLOWED = 4e9 ", ofTracker,
		"^TestEvidenceOfABeatInAHold$"},
	{"sweepers write before they have freed anything", "lua/lib/ending.lua", "  free_first()\n", "", ofTracker,
		"^TestRetentionFreesAFullStore$"},
	{"the same completion again is refused", "lua/beats/complete.lua", "and was == outcome and reported then", "and false then", ofTracker,
		"^(TestLifecycle|TestRetries)$"},
	{"another outcome of an ended attempt is acknowledged", "lua/beats/complete.lua", "and was == outcome and reported then",
		"and reported then", ofTracker, "^TestLifecycle$"},
	{"an idempotency key stands for nothing", "lua/tasks/idempotency_key.lua", "if not r[1] then", "if true then", ofTracker,
		"^TestIdempotentCreation$"},
	{"a fenced worker may claim", "lua/queues/claim.lua", "return not fenced and not redis.call", "return not redis.call", ofTracker,
		"^TestAFencedWorkerClaimsNothing$"},
	{"a claim goes beyond the worker's capacity", "lua/workers/worker_reserve.lua", "math.min(want, max - others - held)", "want", ofTracker,
		"^TestClaimRespectsCapacity$"},
	{"a claim's id is forgotten", "lua/queues/claimed.lua", "redis.call('HSET', KEYS[1], 'o', request, 's', state, 'u', " +
		"string.format('%.0f', " +
		"now + ARGV[4]), 't', ARGV[4])\n", "", ofTracker, "^TestClaimID$"},
	{"a cancel's grace runs from the request", "lua/tasks/cancel.lua", "  leave_notice(task, 'c', reason)",
		"  leave_notice(task, 'c', reason)\n  redis.call('ZADD', TIMERS, shard_time(CLOCK) + (task.f.g or ARGV[4]), 'c:' .. member_of(task))",
		ofTracker, "^TestGraceRunsFromTheDelivery$"},
	{"each delivery of a cancel begins its grace anew", "lua/beats/deliver.lua", "if not grace or delivered ~= '' then return 0 end",
		"if not grace then return 0 end", ofTracker, "^TestCancel$"},
	{"a cancelled attempt is tried again", "lua/lib/ending.lua", "if not f.q or not f.p or f.cr then return nil end",
		"if not f.q or not f.p then return nil end", ofTracker, "^TestNothingIsRetriedUnderCancel$"},
	{"what the brake does not hold yet is taken", "tracker/brake.go", "			case brakeLets:", "			case brakeLets, brakeAwaits:", ofTracker,
		"^TestWhatTheBrakeDoesNotHoldYetIsNotTaken$"},
	{"losses have no end", "lua/lib/ending.lua", "if loss and count > tonumber(losses) or", "if", ofTracker,
		"^TestMaxLossesStopsAPoisonPill$"},
	{"a task stays in the list of its state before", "lua/lib/task.lua",
		"  if from then write('ZREM', IX, task.scope .. '/' .. from .. '/' .. task.id) end\n", "", ofTracker, "^TestATaskIsInOneList$"},
	{"a verdict has no event", "lua/lib/ending.lua", "  emit(task, 'task.failed', data)\n", "", ofTracker,
		"^(TestOneTransitionWins|TestSweepersAgainstCompleters)$"},
	{"an ended attempt leaves no history", "lua/lib/ending.lua", "if f.a > 0 and f.s ~= 'Q' then", "if false then", ofTracker,
		"^(TestZombie|TestSweepersAgainstCompleters)$"},
	{"a dead worker's machine stays online", "lua/lib/worker.lua", "  return follow(w, v.ended)\n", "", ofTracker, "^TestWorkerStale$"},
	{"a dead worker's tasks are not entered for recovery", "lua/lib/worker.lua", "  redis.call('ZADD', RECOVERIES, now, w.name)\n", "",
		ofTracker, "^(TestRecoveryIsResumedAfterEachStep|TestASweeperDiesBetweenAnyTwoSteps)$"},

	{"NOSCRIPT is not answered", "tracker/call.go", "if len(missing) > 0 {", "if len(missing) > 1<<30 {", ofTracker, "^TestNoScript$"},
	{"a full lane takes more", "tracker/lane.go", "case len(s.pending) >= s.limit:", "case len(s.pending) >= 1<<30:", ofTracker,
		"^(TestSmallLaneIsExact|TestLaneGivesEachItemOneFate)$"},
	{"a claim takes types that its worker cannot run", "tracker/ready.go", "k.kind != \"\" && !slices.Contains(c.can.Types, k.kind):",
		"false:", ofTracker, "^TestClaimsThatWaitTogetherGetTheirOwnTypes$"},

	{"any algorithm signs a token", "api/token/claims.go", "		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),\n", "", ofAPI,
		"^TestOnlyHS256Opens$"},
	{"a token needs no expiry", "api/token/claims.go", "		jwt.WithExpirationRequired(),\n", "", ofAPI, "^TestTokensThatDoNotHoldAre401$"},
	{"anybody's token opens", "api/token/claims.go", "		jwt.WithIssuer(issuer),\n", "", ofAPI, "^TestTokensThatDoNotHoldAre401$"},
	{"an unknown kid has an empty key", "api/token/claims.go", "	if !known {\n", "	if !known && kid == \"\" {\n", ofAPI,
		"^TestTokensThatDoNotHoldAre401$"},
	{"a token opens every attempt of its task", "api/auth.go", "if a.Number == number {", "if a.Number > 0 {", ofAPI,
		"^TestATaskTokenOpensItsAttemptOnly$"},
	{"a token opens every task", "api/auth.go", "case a.TaskID == string(id):", "case len(id) > 0:", ofAPI,
		"^TestATaskTokenOpensItsAttemptOnly$"},
	{"a remembered token outlives its expiry", "api/token/cache.go", "if e.Expires <= now {", "if e.Expires < 0 {", ofToken,
		"^TestTokenCacheNeverFindsAnExpiredToken$"},
}
