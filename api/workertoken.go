package api

import (
	"time"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/tracker"
)

// workerTokenLife is how long a worker's token holds. A beat in the last third of it answers with a fresh one.
const workerTokenLife = tracker.WorkerTokenTTL

// mintWorker makes the token of a worker that holds from now on. It carries the registration, should the store lose it.
func mintWorker(k *token.Keyring, scope tracker.Scope, r *tracker.Registered, now time.Time) (string, time.Time, error) {
	return k.Mint(&token.Claims{
		Kind: token.KindWorker, Tenant: scope.Tenant, Workspace: scope.Workspace,
		Worker: r.WorkerID, Machine: r.MachineID, Queue: r.Queue, Record: r.Record,
	}, now, workerTokenLife)
}

// renewedWorker gives the token that a worker's beat at now should answer with, "" when it is not time yet.
func renewedWorker(k *token.Keyring, c *token.Claims, now time.Time) (text string, expires time.Time) {
	if now.Before(c.ExpiresAt.Add(-workerTokenLife / 3)) {
		return "", time.Time{}
	}
	text, expires, err := k.Mint(c, now, workerTokenLife)
	if err != nil {
		return "", time.Time{} // signing a struct of plain fields does not fail; the old token still holds
	}
	return text, expires
}

// authorizeWorker lets in the token of the path's worker, or, where the route has roles, a control token.
func (c *call) authorizeWorker() error {
	k, err := c.claims()
	switch {
	case err != nil:
		c.s.metrics.badTokens.Inc()
		return errUnauthorized
	case k.Kind == token.KindControl && c.route.needs != 0:
		return c.authorizeControl()
	case k.Kind != token.KindWorker:
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
