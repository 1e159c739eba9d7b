package fetcher

import (
	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/protocol/discover"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/textfile"
	"github.com/lektordir/lektor/lektordir"
)

// recordESS records the URLs of the ESS and NNO documents that a feed names, which are smaller and
// show whether it has changed, and the number of bytes transferred for the feed itself.
func recordESS(d *lektordir.Dir, hash string, feed *feedconv.Feed, size int64) error {
	var ess, nno string
	for _, l := range feed.Links {
		switch textfile.BaseType(l.Type) {
		case "application/ess":
			ess = first(ess, l.URL)
		case "application/nno":
			nno = first(nno, l.URL)
		}
	}
	return schedule.ESSOf(d, hash).Record(ess, nno, size)
}

// recordPageESS records the ESS and NNO documents that a page links to. If it links to several ESS
// documents, the one with the title of the feed or at its position is the feed's.
func recordPageESS(d *lektordir.Dir, hash string, page *discover.Result, feed discover.Link) error {
	var nno string
	for _, l := range page.NNO {
		nno = first(nno, l.URL)
	}
	return schedule.ESSOf(d, hash).Record(first("", essFor(page, feed)), nno, 0)
}

func essFor(page *discover.Result, feed discover.Link) string {
	var titled []string
	place := -1
	for i, f := range page.Feeds {
		if f.URL == feed.URL {
			place = i
		}
	}
	for _, l := range page.ESS {
		if l.Title != "" && l.Title == feed.Title {
			titled = append(titled, l.URL)
		}
	}
	switch {
	case len(titled) == 1:
		return titled[0]
	case len(page.ESS) == len(page.Feeds) && place >= 0:
		return page.ESS[place].URL
	}
	return ""
}

// first returns have unless it is empty, else url if it is http or https: other URLs are not
// fetched because a document names them.
func first(have, url string) string {
	if have != "" || !feedurl.IsHTTP(url) {
		return have
	}
	return lektordir.NormalizeID(feedfiles.OneField(url))
}
