package fetcher

import (
	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/feeddir"
)

// push records how a feed tells of its updates, for those who listen.
func (r *Runner) push(hash string, feed *feedconv.Feed) error {
	return feeddir.PushOf(feed.Clouds, feed.Links).Write(r.Dir, hash)
}

func oneField(s string) string { return feeddir.OneField(s) }
