package viewer

import (
	"context"
	"errors"
	"fmt"

	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/read/index"
	"github.com/lektordir/lektor/internal/text/humanize"
)

// IndexOptions are the options of [Index].
type IndexOptions struct {
	session.Common
	Check bool // compare the index with the directory
	Drop  bool // remove the index
}

// Index builds the index or brings it up to date, checks it, or removes it.
func Index(ctx context.Context, o IndexOptions, s *cmdline.Streams) error {
	if o.Check && o.Drop {
		return cmdline.Usagef("--check and --drop exclude each other")
	}
	_, x, err := index.Open(o.Dir, o.Now, s, o.Common.Index)
	if err != nil {
		return err
	}
	var bar *cmdline.Progress
	done := 0
	progress := func(now, total int) {
		if bar == nil {
			bar = s.Report.Progress(total, "entries")
		}
		bar.Add(now - done)
		done = now
	}
	defer func() { bar.Done() }()
	switch {
	case o.Drop:
		return x.Drop()
	case o.Check:
		bad := 0
		n, err := x.Check(ctx, progress, func(problem string) {
			bad++
			s.Report.Print(errors.New(problem))
		})
		if err != nil {
			return err
		}
		if bad > 0 {
			return cmdline.Hint(fmt.Errorf("the index differs from the directory in %s", humanize.Count(bad, "place")),
				"run lektor-view index --drop, and then lektor-view index to build it again")
		}
		_, err = fmt.Fprintf(s.Out, "%s, as in the directory\n", humanize.Count(n, "entry"))
		return err
	}
	return x.Build(ctx, progress)
}
