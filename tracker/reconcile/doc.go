// Package reconcile repairs what a store that lost writes left behind. It slowly walks over everything that names a task or a
// worker, compares it with the records, removes entries without a record, and restores what a record needs to end.
package reconcile
