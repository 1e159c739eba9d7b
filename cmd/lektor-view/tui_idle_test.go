package main

import (
	"bufio"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/files/watch"
)

// wakeUps returns how often the threads of a process have slept and were woken: the number of
// their voluntary context switches.
func wakeUps(t *testing.T, pid string) (n int) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/" + pid + "/task/*/status")
	if err != nil || len(tasks) == 0 {
		t.Fatalf("no threads of %s: %v", pid, err)
	}
	for _, task := range tasks {
		f, err := os.Open(task)
		if err != nil {
			continue // a thread that has ended
		}
		for s := bufio.NewScanner(f); s.Scan(); {
			if v, ok := strings.CutPrefix(s.Text(), "voluntary_ctxt_switches:"); ok {
				k, _ := strconv.Atoi(strings.TrimSpace(v))
				n += k
			}
		}
		f.Close()
	}
	return n
}

// TestTUIIdle: the reader sleeps while nothing happens, at the start and after keys, and then
// draws as before.
func TestTUIIdle(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for six seconds")
	}
	if runtime.GOOS != "linux" {
		t.Skip("wake-ups are counted by /proc")
	}
	watch.New(t.Context(), time.Hour, func(why string) { t.Skip(why) }, nil) // polling wakes the reader
	t.Parallel()
	r := read(t, readerDir(t, false), 100, 20, "")
	r.see(t, `three 2`)
	data, err := os.ReadFile(filepath.Join(r.home, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid := strings.TrimSpace(string(data))
	asleep := func(when string) {
		t.Helper()
		const most = 5
		n := 0
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
			before := wakeUps(t, pid)
			<-time.After(2 * time.Second)
			if n = wakeUps(t, pid) - before; n <= most {
				return
			}
		}
		t.Errorf("%s: woken %d times in two seconds", when, n)
	}
	asleep("at the start")
	r.Keys("j")
	asleep("after a key")
	r.Keys("?")
	r.see(t, `the keys`)
	r.Keys("Escape")
	r.gone(t, `the keys`)
	asleep("after help")
}
