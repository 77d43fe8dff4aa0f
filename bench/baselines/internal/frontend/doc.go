// Package frontend is what the HTTP baselines have in common: the same two calls, the same tokens, the same checks and
// the same script as each other. What a baseline stands for is only how it verifies a token and how its script call
// travels to Redis; so a difference in cost is a difference in those.
//
// Where Lubdub does more for a beat (it looks for a pending cancel, keeps shard time and renews tokens), the baselines
// do without. That favours them.
package frontend
