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
	go w.beat(w.session, w.session.token, w.write(), w.clock.Now())
	for w.beating {
		w.free.Wait()
	}
}
