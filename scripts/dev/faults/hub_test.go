//go:build linux && (amd64 || arm64)

package main

import (
	"testing"

	"github.com/lektordir/lektor/internal/testkit/must"
)

// TestHubAnswersWhenItIsOnTheDisk: a hub has its state on the disk when it answers, and the
// journal of a round when it notifies the first subscriber.
func TestHubAnswersWhenItIsOnTheDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	if err := supported(t.Context()); err != nil {
		t.Skip(err)
	}
	var h *hubs
	var r *recording
	var all []*promise
	if err := must.Run(func() {
		h = newHubs(t.TempDir())
		all = h.promises()
		r = must.Get(h.record(t.Context(), all))
	}); err != nil {
		t.Fatal(err)
	}
	defer h.site.Close()
	tried, findings := h.broken(t.Context(), r, all, model{})
	if tried < 2*len(all) {
		t.Errorf("%d states were tried", tried)
	}
	for _, err := range findings {
		t.Error(err)
	}
	// The test detects broken promises: if syncs do nothing, the promised state is lost.
	if _, findings = h.broken(t.Context(), r, all[:3], model{unsynced: true}); len(findings) < 3 {
		t.Errorf("without syncs %d promises are broken: %v", len(findings), findings)
	}
}
