package fetcher

import (
	"slices"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/protocol/discover"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/lektordir"
)

// recordESS records the URLs of the ESS and NNO documents that a feed names, which are smaller and
// show whether it has changed, and the number of bytes transferred for the feed itself.
func recordESS(d *lektordir.Dir, hash string, feed *feedconv.Feed, size int64) error {
	named := discover.InFeed(feed.Links)
	return schedule.ESSOf(d, hash).Record(first(named.ESS), first(named.NNO), size)
}

// recordPageESS records the ESS and NNO documents that a page links to.
func recordPageESS(d *lektordir.Dir, hash string, page *discover.Result, feed discover.Link) error {
	return schedule.ESSOf(d, hash).Record(first(essFor(page, feed)), first(page.NNO), 0)
}

// essFor returns the ESS documents of a page that begin with that of a feed. If there are several, it is the one with
// the title of the feed, or at its position.
func essFor(page *discover.Result, feed discover.Link) []discover.Link {
	titled := slices.DeleteFunc(slices.Clone(page.ESS),
		func(l discover.Link) bool { return l.Title == "" || l.Title != feed.Title })
	place := slices.IndexFunc(page.Feeds, func(l discover.Link) bool { return l.URL == feed.URL })
	switch {
	case len(titled) == 1:
		return titled
	case len(page.ESS) == len(page.Feeds) && place >= 0:
		return page.ESS[place:]
	}
	return nil
}

// first returns the URL of the first link, "" if there is none, or it is not http or https: other URLs are not
// fetched because a document names them.
func first(links []discover.Link) string {
	if len(links) == 0 || !feedurl.IsHTTP(links[0].URL) {
		return ""
	}
	return lektordir.NormalizeID(feedfiles.OneField(links[0].URL))
}
