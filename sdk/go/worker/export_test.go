package worker

// BeatNow has a worker beat now, and waits until that is answered.
func BeatNow(w *Worker) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.beating {
		w.free.Wait()
	}
	w.beating = true
	w.beats++
	seq, active := w.write()
	s, now := w.session, w.clock.Now()
	go w.beat(s, s.token, seq, active, len(w.held), now)
	for w.beating {
		w.free.Wait()
	}
}
