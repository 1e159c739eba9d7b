package work

import "sync"

// writer does work in the order in which it was added, in a goroutine that lives while there is some. So changes are
// made whether or not the loop of the screen runs.
type writer struct {
	mu      sync.Mutex
	waiting []func() // the first is being done
}

func (w *writer) add(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting = append(w.waiting, do); len(w.waiting) == 1 {
		go w.write(do)
	}
}

// write does the first of the waiting work, and then the others.
func (w *writer) write(do func()) {
	for do != nil {
		do()
		do = w.next()
	}
}

func (w *writer) next() func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting = w.waiting[1:]; len(w.waiting) == 0 {
		return nil
	}
	return w.waiting[0]
}
