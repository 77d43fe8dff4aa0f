package client

import (
	"context"
	"crypto/rand"
	"iter"
	"net/http"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// RegisterWorker registers a worker. Without a registrationId one is generated, which makes the client's retries safe.
func (c *Client) RegisterWorker(ctx context.Context, r v1.RegisterWorkerRequest) (*v1.RegisterWorkerResponse, error) {
	if r.RegistrationID == "" {
		r.RegistrationID = rand.Text()
	}
	return post[v1.RegisterWorkerResponse](ctx, c, "/v1/workers", r)
}

// WorkerHeartbeat sends a worker's own heartbeat, with the worker's token.
func (c *Client) WorkerHeartbeat(
	ctx context.Context, workerID, token string, r v1.WorkerHeartbeatRequest,
) (*v1.WorkerHeartbeatResponse, error) {
	k := &call{method: http.MethodPost, path: "/v1/workers/" + seg(workerID) + "/heartbeat", in: r, token: token}
	return invoke[v1.WorkerHeartbeatResponse](ctx, c, k)
}

// ClaimTasks claims tasks of a queue, with the token of one of its workers. Without a claimId one is generated, which makes the client's
// retries safe.
func (c *Client) ClaimTasks(ctx context.Context, queue, token string, r v1.ClaimRequest) (*v1.ClaimResponse, error) {
	if r.ClaimID == "" {
		r.ClaimID = rand.Text()
	}
	k := &call{method: http.MethodPost, path: "/v1/queues/" + seg(queue) + "/claim", in: r, token: token}
	if r.WaitMs != nil {
		k.wait = time.Duration(*r.WaitMs) * time.Millisecond
	}
	return invoke[v1.ClaimResponse](ctx, c, k)
}

// Exchange sends a worker's heartbeat and the results of its attempts, and claims tasks, in one request. The error is that of the request;
// each result has its own, and so has the claim.
func (c *Client) Exchange(ctx context.Context, workerID, token string, r v1.ExchangeRequest) (*v1.ExchangeResponse, error) {
	k := &call{method: http.MethodPost, path: "/v1/workers/" + seg(workerID) + "/exchange", in: r, token: token}
	return invoke[v1.ExchangeResponse](ctx, c, k)
}

// DeregisterWorker deregisters a worker, with its token, or, if empty, the client's.
func (c *Client) DeregisterWorker(ctx context.Context, workerID, token string, r v1.DeregisterRequest) (*v1.Worker, error) {
	return c.actOnWorker(ctx, workerID, "deregister", token, r)
}

// DrainWorker drains a worker: it finishes its tasks and gets no new ones. token is the worker's, or, if empty, the client's.
func (c *Client) DrainWorker(ctx context.Context, workerID, token string, r v1.DrainRequest) (*v1.Worker, error) {
	return c.actOnWorker(ctx, workerID, "drain", token, r)
}

// ResumeWorker ends a drain.
func (c *Client) ResumeWorker(ctx context.Context, workerID string, r v1.ReasonRequest) (*v1.Worker, error) {
	return c.actOnWorker(ctx, workerID, "resume", "", r)
}

// OfflineWorker ends a worker now; other workers get its tasks.
func (c *Client) OfflineWorker(ctx context.Context, workerID string, r v1.ReasonRequest) (*v1.Worker, error) {
	return c.actOnWorker(ctx, workerID, "offline", "", r)
}

// CordonWorker stops giving a worker new tasks.
func (c *Client) CordonWorker(ctx context.Context, workerID string, r v1.ReasonRequest) (*v1.Worker, error) {
	return c.actOnWorker(ctx, workerID, "cordon", "", r)
}

// UncordonWorker ends a cordon.
func (c *Client) UncordonWorker(ctx context.Context, workerID string, r v1.ReasonRequest) (*v1.Worker, error) {
	return c.actOnWorker(ctx, workerID, "uncordon", "", r)
}

func (c *Client) actOnWorker(ctx context.Context, workerID, act, token string, in any) (*v1.Worker, error) {
	k := &call{method: http.MethodPost, path: "/v1/workers/" + seg(workerID) + "/" + act, in: in, token: token}
	if token == "" {
		k.query = c.scoped(nil)
	}
	return invoke[v1.Worker](ctx, c, k)
}

// DrainWorkers drains all workers that a selector matches.
func (c *Client) DrainWorkers(ctx context.Context, r v1.DrainWorkersRequest) (*v1.DrainWorkersResponse, error) {
	return post[v1.DrainWorkersResponse](ctx, c, "/v1/workers:drain", r)
}

// CordonWorkers cordons all workers that a selector matches.
func (c *Client) CordonWorkers(ctx context.Context, r v1.ActOnWorkersRequest) (*v1.ActOnWorkersResponse, error) {
	return post[v1.ActOnWorkersResponse](ctx, c, "/v1/workers:cordon", r)
}

// UncordonWorkers ends the cordons of all workers that a selector matches.
func (c *Client) UncordonWorkers(ctx context.Context, r v1.ActOnWorkersRequest) (*v1.ActOnWorkersResponse, error) {
	return post[v1.ActOnWorkersResponse](ctx, c, "/v1/workers:uncordon", r)
}

// ResumeWorkers ends the drains of all workers that a selector matches.
func (c *Client) ResumeWorkers(ctx context.Context, r v1.ActOnWorkersRequest) (*v1.ActOnWorkersResponse, error) {
	return post[v1.ActOnWorkersResponse](ctx, c, "/v1/workers:resume", r)
}

// OfflineWorkers ends all workers that a selector matches, or that have been silent for long.
func (c *Client) OfflineWorkers(ctx context.Context, r v1.OfflineWorkersRequest) (*v1.ActOnWorkersResponse, error) {
	return post[v1.ActOnWorkersResponse](ctx, c, "/v1/workers:offline", r)
}

// SelectWorker returns the best worker for a task now.
func (c *Client) SelectWorker(ctx context.Context, r v1.SelectWorkerRequest) (*v1.SelectWorkerResponse, error) {
	return post[v1.SelectWorkerResponse](ctx, c, "/v1/workers:select", r)
}

// GetWorker returns a worker.
func (c *Client) GetWorker(ctx context.Context, workerID string) (*v1.Worker, error) {
	return get[v1.Worker](ctx, c, "/v1/workers/"+seg(workerID), nil)
}

// WorkerQuery filters workers; zero fields are ignored.
type WorkerQuery struct {
	Queue       string            `url:"queue"`
	Status      v1.WorkerStatus   `url:"status"`
	Type        string            `url:"type"`
	Runtime     string            `url:"runtime"`
	MachineID   string            `url:"machineId"`
	Name        string            `url:"name"`
	Version     string            `url:"version"`
	Labels      map[string]string `url:"label"`
	Liveness    v1.Liveness       `url:"liveness"`
	Schedulable *bool             `url:"schedulable"`
	Sort        string            `url:"sort"`     // lastHeartbeat, or empty: by id
	Order       string            `url:"order"`    // asc (the default) or desc
	PageSize    int               `url:"pageSize"` // 1 to 100; 0: 100
	PageToken   string            `url:"pageToken"`
}

// ListWorkers returns one page of workers.
func (c *Client) ListWorkers(ctx context.Context, q WorkerQuery) (*v1.WorkerList, error) {
	return get[v1.WorkerList](ctx, c, "/v1/workers", values(q))
}

// Workers yields all workers of a query, page by page. An error is the last value.
func (c *Client) Workers(ctx context.Context, q WorkerQuery) iter.Seq2[v1.Worker, error] {
	return pages(q.PageToken, func(token string) ([]v1.Worker, string, error) {
		q.PageToken = token
		page, err := c.ListWorkers(ctx, q)
		if err != nil {
			return nil, "", err
		}
		return page.Workers, page.NextPageToken, nil
	})
}

// MachineQuery filters machines.
type MachineQuery struct {
	Status    v1.WorkerStatus `url:"status"`
	Order     string          `url:"order"`
	PageSize  int             `url:"pageSize"` // 1 to 100; 0: 100
	PageToken string          `url:"pageToken"`
}

// ListMachines returns one page of machines.
func (c *Client) ListMachines(ctx context.Context, q MachineQuery) (*v1.MachineList, error) {
	return get[v1.MachineList](ctx, c, "/v1/machines", values(q))
}

// Machines yields all machines, page by page. An error is the last value.
func (c *Client) Machines(ctx context.Context, q MachineQuery) iter.Seq2[v1.Machine, error] {
	return pages(q.PageToken, func(token string) ([]v1.Machine, string, error) {
		q.PageToken = token
		page, err := c.ListMachines(ctx, q)
		if err != nil {
			return nil, "", err
		}
		return page.Machines, page.NextPageToken, nil
	})
}

// GetMachine returns a machine.
func (c *Client) GetMachine(ctx context.Context, machineID string) (*v1.Machine, error) {
	return get[v1.Machine](ctx, c, "/v1/machines/"+seg(machineID), nil)
}

// DrainMachine drains all workers of a machine, and those that register until ResumeMachine.
func (c *Client) DrainMachine(ctx context.Context, machineID string, r v1.DrainRequest) (*v1.DrainWorkersResponse, error) {
	return post[v1.DrainWorkersResponse](ctx, c, "/v1/machines/"+seg(machineID)+"/drain", r)
}

// OfflineMachine takes all workers of a machine offline at once and refuses registrations on it until ResumeMachine.
func (c *Client) OfflineMachine(ctx context.Context, machineID string, r v1.ReasonRequest) (*v1.ActOnWorkersResponse, error) {
	return post[v1.ActOnWorkersResponse](ctx, c, "/v1/machines/"+seg(machineID)+"/offline", r)
}

// ResumeMachine ends the drain and the hold of a machine.
func (c *Client) ResumeMachine(ctx context.Context, machineID string, r v1.ReasonRequest) (*v1.ResumeMachineResponse, error) {
	return post[v1.ResumeMachineResponse](ctx, c, "/v1/machines/"+seg(machineID)+"/resume", r)
}

// ListQueues returns all queues; order is asc (also where it is empty) or desc.
func (c *Client) ListQueues(ctx context.Context, order string) (*v1.QueueList, error) {
	return get[v1.QueueList](ctx, c, "/v1/queues", values(struct {
		Order string `url:"order"`
	}{order}))
}

// GetQueue returns a queue.
func (c *Client) GetQueue(ctx context.Context, queue string) (*v1.Queue, error) {
	return get[v1.Queue](ctx, c, "/v1/queues/"+seg(queue), nil)
}

// PauseQueue stops handing out the tasks of a queue.
func (c *Client) PauseQueue(ctx context.Context, queue string) (*v1.Queue, error) {
	return post[v1.Queue](ctx, c, "/v1/queues/"+seg(queue)+"/pause", none{})
}

// ResumeQueue ends a pause.
func (c *Client) ResumeQueue(ctx context.Context, queue string) (*v1.Queue, error) {
	return post[v1.Queue](ctx, c, "/v1/queues/"+seg(queue)+"/resume", none{})
}

// WorkerHeartbeatOnce is WorkerHeartbeat without retries, and with an encoded v1.WorkerHeartbeatRequest: for programs that schedule
// heartbeats themselves, as package worker does.
func (c *Client) WorkerHeartbeatOnce(ctx context.Context, workerID, token string, body []byte) (*v1.WorkerHeartbeatResponse, error) {
	k := &call{method: http.MethodPost, path: "/v1/workers/" + seg(workerID) + "/heartbeat", body: body, token: token, tries: 1}
	return invoke[v1.WorkerHeartbeatResponse](ctx, c, k)
}
