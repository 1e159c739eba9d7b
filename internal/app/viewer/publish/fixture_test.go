package publish

import (
	"testing"

	"github.com/lektordir/lektor/internal/testkit/viewdir"
)

// fixture is a lektor-dir for tests.
type fixture struct{ *viewdir.Fixture }

func newFixture(t testing.TB) *fixture { return &fixture{viewdir.New(t)} }
