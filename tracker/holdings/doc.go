// Package holdings is about what a worker holds: the entries of its attempts, what its inventory says of them, the notices it is
// owed about them, and their recovery once it has ended.
package holdings
