package model

// Narrows tells whether the filter asks for more than what the index counts exactly.
func (f *TaskFilter) Narrows() bool {
	return f.WorkerID != "" || f.Queue != "" || f.Type != "" || len(f.Labels) > 0 || f.Liveness != ""
}

func (f *TaskFilter) Matches(t *Task) bool {
	for k, v := range f.Labels {
		if got, ok := t.Labels[k]; !ok || got != v {
			return false
		}
	}
	return (f.State == "" || t.State == f.State) && // it may have moved since the index was read
		(f.WorkerID == "" || t.WorkerID == f.WorkerID) && (f.Queue == "" || t.Queue == f.Queue) &&
		(f.Type == "" || t.Type == f.Type) && (f.Liveness == "" || t.Liveness == f.Liveness)
}
