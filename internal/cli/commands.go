// Package cli is the tree of the commands by which operators look at a deployment and act on it. Each is written in the package of
// its noun or view; all of them go through the public API, with the Go SDK's client, and evaluate nothing themselves.
package cli

import (
	"github.com/lubdub-io/lubdub/internal/cli/completion"
	"github.com/lubdub-io/lubdub/internal/cli/contextcmd"
	"github.com/lubdub-io/lubdub/internal/cli/doctor"
	"github.com/lubdub-io/lubdub/internal/cli/event"
	"github.com/lubdub-io/lubdub/internal/cli/login"
	"github.com/lubdub-io/lubdub/internal/cli/queue"
	"github.com/lubdub-io/lubdub/internal/cli/reference"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/schedule"
	"github.com/lubdub-io/lubdub/internal/cli/status"
	"github.com/lubdub-io/lubdub/internal/cli/system"
	"github.com/lubdub-io/lubdub/internal/cli/task"
	"github.com/lubdub-io/lubdub/internal/cli/token"
	"github.com/lubdub-io/lubdub/internal/cli/top"
	"github.com/lubdub-io/lubdub/internal/cli/ui"
	"github.com/lubdub-io/lubdub/internal/cli/webhook"
	"github.com/lubdub-io/lubdub/internal/cli/why"
	"github.com/lubdub-io/lubdub/internal/cli/worker"
)

// Commands are the operator's, as kong reads them.
type Commands struct {
	Status     status.Command     `cmd:"" help:"Show whether Lubdub or your workers are at fault, what was lost, and what to do."`
	Why        why.Command        `cmd:"" help:"Explain everything known about a task, worker, machine or queue."`
	Doctor     doctor.Command     `cmd:"" help:"Check the connection to a deployment, its replicas, Redis and shards, with remedies."`
	Top        top.Command        `cmd:"" help:"Show a deployment live, and act on what is shown."`
	Login      login.Command      `cmd:"" help:"Sign in with the OpenID provider of a deployment."`
	UI         ui.Command         `cmd:"" name:"ui" help:"Open the dashboard, signed in."`
	Task       taskCommands       `cmd:"" help:"List, create, cancel, retry and follow tasks."`
	Run        runCommands        `cmd:"" help:"Show runs, cancel them, wait for them."`
	Worker     workerCommands     `cmd:"" help:"List workers; drain, cordon, resume and end them."`
	Machine    machineCommands    `cmd:"" help:"List machines; drain and resume them."`
	Queue      queueCommands      `cmd:"" help:"List queues; pause and resume them."`
	Schedule   scheduleCommands   `cmd:"" help:"List, create, pause, fire and backfill schedules."`
	Webhook    webhookCommands    `cmd:"" help:"List, create, test and redeliver webhooks."`
	Event      eventCommands      `cmd:"" help:"List events and follow them."`
	System     systemCommands     `cmd:"" help:"Show replicas, shards and Redis; sweep now; release the brake."`
	Completion completion.Command `cmd:"" help:"Print a completion script for a shell."`
	Reference  reference.Command  `cmd:"" help:"Print the reference of all commands as Markdown."`
	Context    contextCommands    `cmd:"" help:"Choose the deployment that commands work with."`
}

type taskCommands struct {
	Ls     task.List   `cmd:"" aliases:"list" help:"List tasks."`
	Get    task.Get    `cmd:"" help:"Show tasks."`
	Why    why.Task    `cmd:"" aliases:"describe" help:"Explain everything known about a task."`
	Create task.Create `cmd:"" help:"Create a task."`
	Cancel task.Cancel `cmd:"" help:"Cancel tasks, by id or all that match the filters."`
	Retry  task.Retry  `cmd:"" help:"Try failed tasks again, by id or all that match the filters."`
	Wait   task.Wait   `cmd:"" help:"Wait until tasks have ended."`
	Watch  task.Watch  `cmd:"" help:"Show a task whenever it changes, until it ends."`
	Tail   task.Tail   `cmd:"" help:"Follow a task's events."`
}

type runCommands struct {
	Ls     task.RunList   `cmd:"" aliases:"list" help:"List a run's tasks."`
	Get    task.RunGet    `cmd:"" help:"Count a run's tasks by state."`
	Cancel task.RunCancel `cmd:"" help:"Cancel all tasks of a run."`
	Wait   task.RunWait   `cmd:"" help:"Wait until all tasks of a run have ended."`
	Tail   task.RunTail   `cmd:"" aliases:"watch" help:"Follow a run's events."`
}

type workerCommands struct {
	Ls       worker.List     `cmd:"" aliases:"list" help:"List workers; those that are OFFLINE with -a."`
	Get      worker.Get      `cmd:"" help:"Show workers."`
	Why      why.Worker      `cmd:"" aliases:"describe" help:"Explain everything known about a worker."`
	Drain    worker.Drain    `cmd:"" help:"Let workers finish their tasks, and give them no new ones."`
	Resume   worker.Resume   `cmd:"" help:"Undo a drain, or allow workers to register again that were taken offline."`
	Cordon   worker.Cordon   `cmd:"" help:"Give workers no new tasks; they stay ONLINE."`
	Uncordon worker.Uncordon `cmd:"" help:"Undo a cordon."`
	Offline  worker.Offline  `cmd:"" help:"End workers now and refuse their registrations until they are resumed; others get their tasks."`
	Tail     worker.Tail     `cmd:"" aliases:"watch" help:"Follow a worker's events."`
}

type machineCommands struct {
	Ls      worker.MachineList    `cmd:"" aliases:"list" help:"List machines; those that are OFFLINE with -a."`
	Get     worker.MachineGet     `cmd:"" help:"Show machines."`
	Why     why.Machine           `cmd:"" aliases:"describe" help:"Explain everything known about a machine."`
	Drain   worker.MachineDrain   `cmd:"" help:"Drain all workers of a machine, and those that register on it until it is resumed."`
	Offline worker.MachineOffline `cmd:"" help:"End all workers of a machine now, and refuse registrations on it until it is resumed."`
	Resume  worker.MachineResume  `cmd:"" help:"Undo a machine's drain, or allow its workers to register again after offline."`
	Tail    worker.MachineTail    `cmd:"" aliases:"watch" help:"Follow a machine's events."`
}

type queueCommands struct {
	Ls     queue.List   `cmd:"" aliases:"list" help:"List queues."`
	Get    queue.Get    `cmd:"" help:"Show queues."`
	Why    why.Queue    `cmd:"" aliases:"describe" help:"Explain what waits in a queue, and what blocks it."`
	Pause  queue.Pause  `cmd:"" help:"Pause a queue: dispatch no more tasks."`
	Resume queue.Resume `cmd:"" help:"Resume a paused queue."`
	Tail   queue.Tail   `cmd:"" aliases:"watch" help:"Follow a queue's events."`
}

type scheduleCommands struct {
	Ls       schedule.List     `cmd:"" aliases:"list" help:"List schedules."`
	Get      schedule.Get      `cmd:"" help:"Show schedules."`
	Create   schedule.Create   `cmd:"" help:"Create a schedule from the body of POST /v1/schedules."`
	Set      schedule.Set      `cmd:"" help:"Patch a schedule with the fields in a file."`
	Rm       schedule.Remove   `cmd:"" aliases:"delete" help:"Delete schedules."`
	Pause    schedule.Pause    `cmd:"" help:"Stop firing."`
	Resume   schedule.Resume   `cmd:"" help:"Resume a paused schedule; missed fires are caught up."`
	Fire     schedule.Fire     `cmd:"" help:"Fire now."`
	Next     schedule.Next     `cmd:"" help:"Show the next fires."`
	Backfill schedule.Backfill `cmd:"" help:"Fire for a period in the past."`
}

type webhookCommands struct {
	Ls         webhook.List       `cmd:"" aliases:"list" help:"List webhooks."`
	Get        webhook.Get        `cmd:"" help:"Show webhooks."`
	Create     webhook.Create     `cmd:"" help:"Create a webhook, and print its secret, once."`
	Set        webhook.Set        `cmd:"" help:"Replace a webhook's definition."`
	Rm         webhook.Remove     `cmd:"" aliases:"delete" help:"Delete webhooks."`
	Test       webhook.Test       `cmd:"" help:"Send a message of type webhook.test."`
	Deliveries webhook.Deliveries `cmd:"" help:"List a webhook's deliveries, newest first."`
	Redeliver  webhook.Redeliver  `cmd:"" help:"Send one message again, or all since a time."`
	Rotate     webhook.Rotate     `cmd:"" help:"Replace a webhook's secret, and print it, once."`
}

type eventCommands struct {
	Ls   event.List `cmd:"" aliases:"list" help:"List events."`
	Tail event.Tail `cmd:"" aliases:"watch" help:"Follow events until Ctrl-C."`
}

type systemCommands struct {
	Get     system.Get     `cmd:"" default:"withargs" help:"Show replicas, shards and Redis."`
	Sweep   system.Sweep   `cmd:"" help:"Sweep now: find silent workers and tasks without waiting for the next sweep."`
	Release system.Release `cmd:"" help:"Release the mass-expiry brake: declare dead now what it delays."`
	Scopes  system.Scopes  `cmd:"" help:"List the tenants and workspaces in use."`
}

type contextCommands struct {
	Ls  contextcmd.List   `cmd:"" aliases:"list" help:"List contexts; an asterisk marks the current one."`
	Use contextcmd.Use    `cmd:"" help:"Make a context the current one."`
	Set contextcmd.Set    `cmd:"" help:"Add a context, or change the fields of one that the flags name."`
	Rm  contextcmd.Remove `cmd:"" aliases:"delete" help:"Remove contexts."`
}

func (*contextCommands) Help() string {
	return "Contexts are stored in lubdub/contexts.yaml in XDG_CONFIG_HOME or ~/.config, which only its owner may read. " +
		"A command uses the one that --context names, else LUBDUB_URL and LUBDUB_TOKEN, else the one of LUBDUB_CONTEXT, else the current one."
}

// TokenCommands are those about tokens that ask a server.
type TokenCommands struct {
	Inspect token.Inspect `cmd:"" help:"Show what a token contains."`
	Revoke  token.Revoke  `cmd:"" help:"Revoke tokens."`
}

// idLists are what a shell is offered where an argument or flag takes ids.
var idLists = completion.IDLists{
	"task": {resource.Tasks.IDs}, "worker": {resource.Workers.IDs}, "machine": {resource.Machines.IDs}, "queue": {resource.Queues.IDs},
	"schedule": {schedule.Schedules.IDs}, "webhook": {webhook.Webhooks.IDs},
	"any": {resource.Workers.IDs, resource.Machines.IDs, resource.Tasks.IDs},
}
