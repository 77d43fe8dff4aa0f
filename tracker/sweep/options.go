package sweep

// SweeperOptions configure a Sweeper.
type SweeperOptions struct {
	ID string // shown in evidence; empty: that of the process, swp_ and a ULID

	// ReconcileRate is how many entries a second the reconciler looks at, over all shards and by all sweepers
	// together; 0: none.
	ReconcileRate int
}
