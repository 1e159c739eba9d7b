package tui

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// softLimit is the memory beyond which it is collected more often.
const softLimit = 150 << 20

// softly limits the memory until it is given back, unless the user does. A hundred
// thousand entries take 60 MB; what is made anew with each list need not double that before
// it is collected. Where more than that is in use the limit is twice as much: below what is
// in use all would be collected without end.
func softly() (giveBack func()) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	before := debug.SetMemoryLimit(softLimit)
	stop := collected(func(live int64) { debug.SetMemoryLimit(max(softLimit, 2*live)) })
	return func() {
		stop()
		debug.SetMemoryLimit(before)
	}
}

// collected calls f after each collection of garbage with how many bytes are in use, until
// it is stopped.
func collected(f func(live int64)) (stop func()) {
	var stopped atomic.Bool
	// It is garbage from the beginning, and found to be by each collection.
	type witness struct{ _ [16]byte }
	var seen func(*witness)
	seen = func(w *witness) {
		if stopped.Load() {
			return
		}
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		f(int64(live[0].Value.Uint64()))
		runtime.SetFinalizer(w, seen)
	}
	runtime.SetFinalizer(&witness{}, seen)
	return func() { stopped.Store(true) }
}
