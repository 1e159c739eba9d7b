//go:build linux && (amd64 || arm64)

package main

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	helper()
	os.Exit(m.Run())
}

// A selection of what make faults tries: in every scenario, of every kind of
// fault and of call one, another one each time, as far as two seconds suffice.
func TestSelection(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("it builds the programs: ", err)
	}
	if err := supported(t.Context()); err != nil {
		t.Skip(err)
	}
	e, err := newEnv(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer e.server.Close()
	for _, s := range scenarios(e) {
		t.Run(s.name, func(t *testing.T) {
			tr, err := newTrial(t.Context(), e, s)
			if err != nil {
				t.Fatal(err)
			}
			var faults []fault
			faults = append(faults, selection(tr.kills(), tr.ops)...)
			faults = append(faults, selection(tr.failures(), tr.ops)...)
			faults = append(faults, selection(tr.readFailures(), tr.reads)...)
			rand.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
			r := tr.all(t.Context(), faults, runtime.NumCPU(), time.Now().Add(2*time.Second))
			if len(r.kinds) == 0 {
				t.Error("no fault was tried")
			}
			for _, err := range r.errors {
				t.Error(err)
			}
		})
	}
}

// selection picks one fault of each kind on each kind of call.
func selection(faults []fault, ops []op) []fault {
	type kind struct {
		call                       string
		kill, short, full, deletes bool
	}
	of := func(f fault) kind { return kind{ops[f.n-1].Kind, f.kill, f.short, f.full, f.deletes} }
	var some []fault
	seen := map[kind]bool{}
	for _, i := range rand.Perm(len(faults)) {
		if k := of(faults[i]); !seen[k] {
			seen[k] = true
			some = append(some, faults[i])
		}
	}
	return some
}

// The harness finds a fault that is one: without its journal, a feed's entries
// are delivered again.
func TestFinds(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	if err := supported(t.Context()); err != nil {
		t.Skip(err)
	}
	e, err := newEnv(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer e.server.Close()
	tr, err := newTrial(t.Context(), e, scenarios(e)[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(tr.template + "/src/" + feedHash(e.url(0)) + "/etc/fetch/seen"); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.try(t.Context(), fault{n: len(tr.ops) / 2, kill: true}); err == nil || errors.Is(err, errPassed) {
		t.Errorf("found nothing: %v", err)
	}
}
