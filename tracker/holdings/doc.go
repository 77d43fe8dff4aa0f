// Package holdings is about what a worker holds: the entries of its attempts, what its inventory says of them, the notices
// it is to be given about them, and their recovery when it has ended.
package holdings
