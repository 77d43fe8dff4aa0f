package workers

import (
	"cmp"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// WorkerNotFound is the code of a worker that this scope does not have, or not any more.
const WorkerNotFound model.Code = "worker_not_found"

// NoWorker is the error about a worker that this scope does not have, or not any more.
func NoWorker(op string) error {
	return &model.Error{
		Code: WorkerNotFound, Op: op,
		Message: "no worker with this id in this tenant and workspace; OFFLINE workers are removed at the end of their retention: register again",
	}
}

// identityOr returns what names a worker's identity key: one that has no identity is named after itself.
func identityOr(identity, id string) string { return cmp.Or(identity, id) }
