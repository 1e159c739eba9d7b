package fetcher

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/lektordir/lektor/internal/cli/cmdline"
)

// move runs lektor-import(1) to import the feeds of another reader, and fetches the feeds that are
// new or were never fetched. lektor-import is a separate program because it loads the database
// drivers, which a fetch does not need.
func (o ImportOptions) move(ctx context.Context, s *cmdline.Streams) error {
	args := []string{"--dir=" + o.Dir, o.From}
	if o.DryRun {
		args = append(args, "--dry-run")
	}
	if o.Yes {
		args = append(args, "--yes")
	}
	var in io.Reader = os.Stdin // lektor-import asks questions
	if f := s.InFile(); f != nil {
		in = f
	}
	var added bytes.Buffer
	streams := cmdline.NewStreams("lektor-import", in, &added, s.Err)
	if o.DryRun {
		streams.Out = s.Out
	}
	err := cmdline.RunBeside(ctx, "lektor-import", append(append(args, "--"), o.Paths...), in, streams)
	switch exit, ok := errors.AsType[*cmdline.ExitError](err); {
	case ok && exit.Status == cmdline.StatusUsage:
		return &cmdline.UsageError{Message: "import --from " + o.From + ": nothing was moved",
			Hint: "see lektor-import(1)"}
	case ok:
		err = fmt.Errorf("import --from %s: something was not moved", o.From)
	case err != nil:
		return err
	}
	sel := Selection{Reason: Forced}
	for line := range strings.Lines(added.String()) {
		sel.Feeds = append(sel.Feeds, filepath.Base(strings.TrimSuffix(line, "\n")))
	}
	if o.DryRun || o.NoFetch || len(sel.Feeds) == 0 {
		return err
	}
	r, end, bad := o.begin(ctx, s, false, nil)
	if bad != nil {
		return errors.Join(err, bad)
	}
	defer end()
	return errors.Join(err, r.imported(ctx, sel, s))
}
