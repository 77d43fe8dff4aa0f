// Package workers is the registry: workers register, beat, drain and end; machines follow them. Selection and placement choose
// among them by what they can run and how much they have to do.
package workers
