package viewer

import (
	"testing"

	"github.com/lektordir/lektor/internal/testkit/viewdir"
)

// TestCountTotal: on a terminal a last line has the sum, in which each entry counts once.
func TestCountTotal(t *testing.T) {
	f := newFixture(t)
	if _, err := f.Feed(viewdir.FeedID, "Alpha", "etc/categories=Tech/Go\nNews"); err != nil {
		t.Fatal(err)
	}
	f.Add("new", "1700000001.1.h")
	f.Add("cur", "1700000002.1.h;2,S")
	for by, want := range map[string]string{
		"folder": "     1      2  News\n     1      2  Tech\n     1      2  Tech/Go\n     1      2  in all\n",
		"feed":   "     1      2  Alpha\n",
		"":       "1 unread of 2\n",
	} {
		s := f.Streams("")
		f.Want(Count(t.Context(), CountOptions{Common: f.Common(), By: by, Total: true}, s), want)
	}
}
