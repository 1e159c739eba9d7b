package tui

import (
	"runtime"
	"testing"
	"time"
)

func TestCollected(t *testing.T) {
	told := make(chan int64, 100)
	stop := collected(func(live int64) { told <- live })
	held := make([]byte, 20<<20)
	for range 3 { // each collection tells
		runtime.GC()
		select {
		case live := <-told:
			if live < int64(len(held)) {
				t.Errorf("%d bytes are in use, of which %d are held", live, len(held))
			}
		case <-time.After(time.Minute):
			t.Fatal("nothing was told of a collection")
		}
	}
	runtime.KeepAlive(held)
	stop()
}
