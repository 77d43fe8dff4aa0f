package model

import "time"

// CancelRequest describes how to cancel a task.
type CancelRequest struct {
	Reason string        // shown to the worker; empty: none
	Grace  time.Duration // time for the worker to stop, from when it was notified; 0: the task's own
	Now    bool          // end the task at once, without waiting for its worker
}

// Validate returns an error for invalid fields. It checks what needs no store.
func (c *CancelRequest) Validate() error {
	if c.Grace < 0 || c.Grace > MaxTimeout {
		return Invalidf("gracePeriodMs", "is %d; use 0 to end the task now, 1 to %d, or omit it for the task's own",
			c.Grace.Milliseconds(), MaxTimeout.Milliseconds())
	}
	return nil
}
