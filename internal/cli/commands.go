package cli

// Commands are the operator's, as kong reads them.
type Commands struct {
	Status     statusCmd     `cmd:"" help:"Tell on one screen who is silent, whether it is them or us, what was lost, and what to do."`
	Why        whyCmd        `cmd:"" help:"Explain everything known about a task, worker or machine."`
	Doctor     doctorCmd     `cmd:"" help:"Check the way to a deployment, its replicas, Redis and shards, with remedies."`
	Top        topCmd        `cmd:"" help:"Show a deployment live, and act on what is shown."`
	UI         uiCmd         `cmd:"" name:"ui" help:"Open the dashboard, signed in."`
	Task       taskCmd       `cmd:"" help:"List, create, cancel, retry and follow tasks."`
	Run        runCmd        `cmd:"" help:"Look at runs, cancel them, wait for them."`
	Worker     workerCmd     `cmd:"" help:"List workers; drain, cordon, resume and end them."`
	Machine    machineCmd    `cmd:"" help:"List machines; drain and resume them."`
	Queue      queueCmd      `cmd:"" help:"List queues; pause and resume them."`
	Schedule   scheduleCmd   `cmd:"" help:"List, create, pause, fire and backfill schedules."`
	Webhook    webhookCmd    `cmd:"" help:"List, create, test and redeliver webhooks."`
	Event      eventCmd      `cmd:"" help:"List events and follow them."`
	System     systemCmd     `cmd:"" help:"Replicas, shards and Redis; sweep now; let go of what the brake holds."`
	Completion completionCmd `cmd:"" help:"Print what a shell needs to complete commands and ids."`
	Reference  referenceCmd  `cmd:"" help:"Print the reference of all commands as Markdown."`
	Context    contextCmd    `cmd:"" help:"Choose the deployment that commands work with."`
}

type taskCmd struct {
	Ls     taskLs     `cmd:"" aliases:"list" help:"List tasks."`
	Get    taskGet    `cmd:"" help:"Show tasks."`
	Why    taskWhy    `cmd:"" aliases:"describe" help:"Explain everything known about a task."`
	Create taskCreate `cmd:"" help:"Create a task."`
	Cancel taskCancel `cmd:"" help:"Cancel tasks, by id or all that filters name."`
	Retry  taskRetry  `cmd:"" help:"Try failed tasks again, by id or all that filters name."`
	Wait   taskWait   `cmd:"" help:"Wait until tasks have ended."`
	Watch  taskWatch  `cmd:"" help:"Show a task whenever it changes, until it ends."`
	Tail   taskTail   `cmd:"" help:"Follow a task's events."`
}

type runCmd struct {
	Ls     runLs     `cmd:"" aliases:"list" help:"List a run's tasks."`
	Get    runGet    `cmd:"" help:"Count a run's tasks by state."`
	Cancel runCancel `cmd:"" help:"Cancel all tasks of a run."`
	Wait   runWait   `cmd:"" help:"Wait until all tasks of a run have ended."`
	Tail   runTail   `cmd:"" aliases:"watch" help:"Follow a run's events."`
}

type workerCmd struct {
	Ls       workerLs       `cmd:"" aliases:"list" help:"List workers; those that are OFFLINE with -a."`
	Get      workerGet      `cmd:"" help:"Show workers."`
	Why      workerWhy      `cmd:"" aliases:"describe" help:"Explain everything known about a worker."`
	Drain    workerDrain    `cmd:"" help:"Have workers finish what they hold and take nothing new."`
	Resume   workerResume   `cmd:"" help:"Undo a drain or a hold."`
	Cordon   workerCordon   `cmd:"" help:"Have workers take nothing new, and stay ONLINE."`
	Uncordon workerUncordon `cmd:"" help:"Undo a cordon."`
	Offline  workerOffline  `cmd:"" help:"End workers now and refuse their registrations until they are resumed; others get their tasks."`
	Tail     workerTail     `cmd:"" aliases:"watch" help:"Follow a worker's events."`
}

type machineCmd struct {
	Ls      machineLs      `cmd:"" aliases:"list" help:"List machines; those that are OFFLINE with -a."`
	Get     machineGet     `cmd:"" help:"Show machines."`
	Why     machineWhy     `cmd:"" aliases:"describe" help:"Explain everything known about a machine."`
	Drain   machineDrain   `cmd:"" help:"Drain all workers of a machine, and those that come until it is resumed."`
	Offline machineOffline `cmd:"" help:"End all workers of a machine now, and refuse those that come until it is resumed."`
	Resume  machineResume  `cmd:"" help:"Take a machine's drain or hold back."`
	Tail    machineTail    `cmd:"" aliases:"watch" help:"Follow a machine's events."`
}

type queueCmd struct {
	Ls     queueLs     `cmd:"" aliases:"list" help:"List queues."`
	Get    queueGet    `cmd:"" help:"Show queues."`
	Why    queueWhy    `cmd:"" aliases:"describe" help:"Explain what waits in a queue, and what blocks it."`
	Pause  queuePause  `cmd:"" help:"Pause a queue: dispatch no more tasks."`
	Resume queueResume `cmd:"" help:"Resume a paused queue."`
	Tail   queueTail   `cmd:"" aliases:"watch" help:"Follow a queue's events."`
}

type scheduleCmd struct {
	Ls       scheduleLs       `cmd:"" aliases:"list" help:"List schedules."`
	Get      scheduleGet      `cmd:"" help:"Show schedules."`
	Create   scheduleCreate   `cmd:"" help:"Create a schedule from the body of POST /v1/schedules."`
	Set      scheduleSet      `cmd:"" help:"Patch a schedule with the fields in a file."`
	Rm       scheduleRm       `cmd:"" aliases:"delete" help:"Delete schedules."`
	Pause    schedulePause    `cmd:"" help:"Stop firing."`
	Resume   scheduleResume   `cmd:"" help:"Resume a paused schedule; missed fires are caught up."`
	Fire     scheduleFire     `cmd:"" help:"Fire now."`
	Next     scheduleNext     `cmd:"" help:"Show the next fires."`
	Backfill scheduleBackfill `cmd:"" help:"Fire for a period in the past."`
}

type webhookCmd struct {
	Ls         webhookLs         `cmd:"" aliases:"list" help:"List webhooks."`
	Get        webhookGet        `cmd:"" help:"Show webhooks."`
	Create     webhookCreate     `cmd:"" help:"Create a webhook, and print its secret, once."`
	Set        webhookSet        `cmd:"" help:"Replace a webhook's definition."`
	Rm         webhookRm         `cmd:"" aliases:"delete" help:"Delete webhooks."`
	Test       webhookTest       `cmd:"" help:"Send a message of type webhook.test."`
	Deliveries webhookDeliveries `cmd:"" help:"List a webhook's deliveries, newest first."`
	Redeliver  webhookRedeliver  `cmd:"" help:"Send one message again, or all since a time."`
	Rotate     webhookRotate     `cmd:"" help:"Replace a webhook's secret, and print it, once."`
}

type eventCmd struct {
	Ls   eventLs   `cmd:"" aliases:"list" help:"List events."`
	Tail eventTail `cmd:"" aliases:"watch" help:"Follow events until Ctrl-C."`
}

type systemCmd struct {
	Get     systemGet     `cmd:"" default:"withargs" help:"Show replicas, shards and Redis."`
	Sweep   systemSweep   `cmd:"" help:"Sweep now: find what has gone silent without waiting for the sweepers."`
	Release systemRelease `cmd:"" help:"Release everything the mass-expiry brake is holding."`
	Scopes  systemScopes  `cmd:"" help:"List the tenants and workspaces in use."`
}

type contextCmd struct {
	Ls  contextLs  `cmd:"" aliases:"list" help:"List contexts; the current one has a star."`
	Use contextUse `cmd:"" help:"Make a context the current one."`
	Set contextSet `cmd:"" help:"Add a context, or change what flags name of one."`
	Rm  contextRm  `cmd:"" aliases:"delete" help:"Remove contexts."`
}

func (*contextCmd) Help() string {
	return "Contexts are kept in lubdub/contexts.yaml in XDG_CONFIG_HOME or ~/.config, which only its owner may read. " +
		"A command uses the one that --context names, else LUBDUB_URL and LUBDUB_TOKEN, else the one of LUBDUB_CONTEXT, else the current one."
}

// TokenCommands are those about tokens that ask a server.
type TokenCommands struct {
	Inspect TokenInspect `cmd:"" help:"Tell what a token says of itself."`
	Revoke  TokenRevoke  `cmd:"" help:"Take tokens back."`
}

// idLists are what a shell is offered where an argument or flag takes ids.
var idLists = IDLists{
	"task": {tasks.ids}, "worker": {workers.ids}, "machine": {machines.ids}, "queue": {queues.ids}, "schedule": {schedules.ids},
	"webhook": {webhooks.ids}, "any": {workers.ids, machines.ids, tasks.ids},
}
