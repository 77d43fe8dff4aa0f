// Package tracker is the domain of Lubdub: tasks and their attempts, the beat batcher and the sweeper. It
// speaks to Redis through the scripts of package lua and knows nothing of HTTP or of tokens.
//
// The data's way through the package: a call on Tracker names its keys (keys.go), runs one script through a
// lane (lane.go, beats.go) and gives back what the script answered. Everything that must hold under races is
// decided inside the scripts; Go decides nothing about a task that it has not just been told by Redis.
package tracker
