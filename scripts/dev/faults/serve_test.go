//go:build linux && (amd64 || arm64)

package main

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A selection of what make faults tries of lektor-serve, another one each time.
func TestServeSelection(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	e := testEnv(t)
	s, err := newServed(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	faults := append(selection(s.kills(), s.ops), selection(s.failures(), s.ops)...)
	faults = append(faults, selection(s.readFailures(), s.trial.reads)...)
	rand.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	r := s.all(t.Context(), faults, time.Now().Add(2*time.Second))
	if len(r.kinds) == 0 {
		t.Error("no fault was tried")
	}
	for _, err := range r.errors {
		t.Error(err)
	}
}
