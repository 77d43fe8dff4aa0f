package tracker

// ShardOf tells where a task lives.
func (t *Tracker) ShardOf(scope Scope, id string) int { return t.store.shardOf(scope, id) }
