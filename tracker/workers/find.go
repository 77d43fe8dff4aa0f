package workers

import (
	"cmp"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// WorkerNotFound is the code for a worker that this scope does not have, or no longer has.
const WorkerNotFound model.Code = "worker_not_found"

// NoWorker returns the error for a worker that this scope does not have, or no longer has.
func NoWorker(op string) error {
	return &model.Error{
		Code: WorkerNotFound, Op: op,
		Message: "no worker with this id in this tenant and workspace; OFFLINE workers are removed at the end of their retention: register again",
	}
}

// identityOr returns the name of a worker's identity key: its identity, or its ID if it has none.
func identityOr(identity, id string) string { return cmp.Or(identity, id) }
