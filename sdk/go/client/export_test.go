package client

// BeatNow has all beats of a client be due, and waits until they are answered.
func BeatNow(c *Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.beaters {
		b.mu.Lock()
		for b.sending {
			b.free.Wait()
		}
		now := c.set.clock.Now()
		for _, a := range b.all {
			a.due = now
			a.busy = true
			b.batch = append(b.batch, a)
		}
		b.sending = true
		b.mu.Unlock()
		b.beat()
	}
}

// ReadResults returns the ids and statuses of an answer to many beats.
func ReadResults(answer []byte) (all []string, err error) {
	err = eachResult(answer, func(r *result) error {
		all = append(all, string(r.taskID))
		return nil
	})
	return all, err
}
