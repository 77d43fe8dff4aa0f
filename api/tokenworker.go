package api

import (
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

const kindWorker = "worker"

// workerTokenLife is how long a worker's token holds. A beat in the last third of it answers with a fresh one.
const workerTokenLife = tracker.WorkerTokenTTL

// mintWorker makes the token of a worker that holds from now on. It carries the registration, should the store lose it.
func (k *Keyring) mintWorker(scope tracker.Scope, r *tracker.Registered, now time.Time) (token string, expires time.Time, err error) {
	iat, exp := lifetime(now, workerTokenLife)
	token, err = k.sign(&claims{
		Kind: kindWorker, Tenant: scope.Tenant, Workspace: scope.Workspace, Worker: r.WorkerID, Machine: r.MachineID, Queue: r.Queue,
		Record: r.Record,
	}, iat, exp)
	return token, exp, err
}

// renewedWorker gives the token that a worker's beat at now should answer with, "" when it is not time yet.
func (k *Keyring) renewedWorker(c *claims, now time.Time) (token string, expires time.Time) {
	if now.Before(c.ExpiresAt.Add(-workerTokenLife / 3)) {
		return "", time.Time{}
	}
	token, expires, err := k.mintWorker(scopeOf(c), &tracker.Registered{WorkerID: c.Worker, MachineID: c.Machine, Queue: c.Queue, Record: c.Record}, now)
	if err != nil {
		return "", time.Time{} // signing a struct of plain fields does not fail; the old token still holds
	}
	return token, expires
}

// authorizeWorker lets in the token of the path's worker, or, where the route has roles, a control token.
func (c *call) authorizeWorker() error {
	k, err := c.claims()
	switch {
	case err != nil:
		c.s.metrics.badTokens.Inc()
		return errUnauthorized
	case k.Kind == kindControl && c.route.needs != 0:
		return c.authorizeControl()
	case k.Kind != kindWorker:
		return forbidden("The token is not a worker's; use the workerToken of the registration")
	case !tracker.ValidID(c.id):
		return invalidID(c.route.idField())
	case c.route.idField() == "workerId" && k.Worker != c.id:
		return forbidden("The token is another worker's; use the workerToken of this worker's registration")
	}
	c.control, c.bySelf = k, true
	return nil
}

// asWorker does what a worker asks for. Where the store has lost the worker's record, it is taken up from its token first.
func (c *call) asWorker(do func() error) error {
	err := do()
	if tracker.CodeOf(err) != tracker.WorkerNotFound || !c.bySelf || len(c.control.Record) == 0 {
		return err
	}
	if err := c.s.tracker.AdoptWorker(c.context(), scopeOf(c.control), c.control.Worker, c.control.Record); err != nil {
		return err
	}
	return do()
}
