package schema

// How sweepers share the work and how much they take at once.
const (
	TakeLimit = 50 // of one script call
)
