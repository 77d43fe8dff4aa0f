// Package proc runs the programs that are measured, each as a process of its own, and reads what they use: CPU and
// memory from /proc, and what Redis tells about itself. Children die with the benchmark, however that ends.
package proc
