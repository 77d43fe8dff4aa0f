// Package model holds the words of the domain (tasks, attempts, workers, errors) and the rules that can be judged without a
// store. It is pure: it knows neither Redis nor any other room.
package model
