package model

import "time"

// CancelRequest says how a task is to be cancelled.
type CancelRequest struct {
	Reason string        // that the worker is told; empty: none
	Grace  time.Duration // that the worker has to stop from when it was told; 0: the task's own
	Now    bool          // the task ends at once, whether or not its worker was told
}

// Validate checks what can be judged without the store.
func (c *CancelRequest) Validate() error {
	if c.Grace < 0 || c.Grace > MaxTimeout {
		return Invalidf("gracePeriodMs", "is %d; use 0 to end the task now, 1 to %d, or leave it out for the task's own",
			c.Grace.Milliseconds(), MaxTimeout.Milliseconds())
	}
	return nil
}
