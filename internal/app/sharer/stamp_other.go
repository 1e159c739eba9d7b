//go:build !linux

package sharer

import "syscall"

// changeTime is not known here: an action that a kill interrupted counts as not done as
// long as what it renames is where it was.
func changeTime(*syscall.Stat_t) string { return "" }

// bootID is unknown here, so all actions since the last commit count.
func bootID() string { return "-" }
