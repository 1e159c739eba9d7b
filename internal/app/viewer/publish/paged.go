package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/protocol/archive"
)

// paged publishes a paged feed (RFC 5005, section 3): the newest entries in the
// subscription document, which is the first page, and the rest in pages from number
// 2 on. Pages are written from the last to the first, so that an entry that moves to
// the next page is in both for a moment, and never in neither.
func (p *publisher) paged(ctx context.Context, d *documents) error {
	old, err := d.found(archives)
	if err != nil {
		return err
	}
	if len(old) > 0 {
		return cmdline.Hint(fmt.Errorf("%s has archives, which subscribers may rely on", d.dir),
			"continue with --archive, or publish to another directory")
	}
	there, err := d.ownPages()
	if err != nil {
		return err
	}
	return p.untilStable(ctx, func() error { return p.writePages(ctx, d, there) })
}

// writePages writes all pages, and removes pages of there that are no longer needed.
func (p *publisher) writePages(ctx context.Context, d *documents, there map[int]bool) error {
	list, err := p.candidates(ctx, false)
	if err != nil {
		return err
	}
	if err := p.whole(d.dir); err != nil {
		return err
	}
	p.uniqueIDs(list)
	count := max(1, (len(list)+p.o.PerPage-1)/p.o.PerPage)
	d.sweep()
	for n := count; n > 0; n-- {
		feed := p.feed
		p.elements(&feed, list)
		p.linkPages(&feed, d, n, count)
		// The list begins with the oldest entries, which belong on the last page.
		to := len(list) - min((n-1)*p.o.PerPage, len(list))
		if feed.Entries, err = p.gather(ctx, list[max(0, to-p.o.PerPage):to]); err != nil {
			return err
		}
		feed.Updated = newestOf(feed.Entries)
		data, err := p.encode(&feed, nil)
		if err != nil {
			return err
		}
		if err := d.put(d.page(n), data); err != nil {
			return err
		}
	}
	return d.removePages(there, count)
}

// linkPages links page n of count to the other pages. Only the first page, which readers
// subscribe to, keeps the links to hubs and clouds.
func (p *publisher) linkPages(feed *feedconv.Feed, d *documents, n, count int) {
	self := feedconv.Link{Rel: "self", URL: d.url(d.page(n))}
	if n == 1 {
		feed.Links = slices.Clone(feed.Links)
	} else {
		if p.format == feedconv.JSONFeed {
			// In JSON Feed the feed_url identifies the feed, so all pages have the same.
			self.URL = p.feed.ID
		}
		feed.Links, feed.Clouds = []feedconv.Link{self}, nil
		if p.format == feedconv.RSS20 {
			feed.Link = p.page()
		}
	}
	link := func(rel string, to int) {
		if to >= 1 && to <= count {
			feed.Links = append(feed.Links, feedconv.Link{Rel: rel, URL: d.url(d.page(to))})
		}
	}
	link("first", 1)
	link("last", count)
	link("previous", n-1)
	link("next", n+1)
}

// page returns the file name of a page. Page 1 is the subscription document.
func (d *documents) page(n int) string {
	if n == 1 {
		return d.name
	}
	return d.numbered(pages, n)
}

// ownPages returns the numbers of the pages in the directory. It fails if one is of another feed.
func (d *documents) ownPages() (map[int]bool, error) {
	there, err := d.found(pages)
	if err != nil {
		return nil, err
	}
	for _, n := range slices.Sorted(maps.Keys(there)) {
		name := d.numbered(pages, n)
		data, err := d.read(name)
		if err != nil {
			return nil, err
		}
		of := ""
		if d.ext == "json" {
			var doc struct {
				URL string `json:"feed_url"`
			}
			err = json.Unmarshal(data, &doc)
			of = doc.URL
		} else {
			var doc *archive.Document
			if doc, err = archive.Read(data); err == nil {
				of = doc.Links["first"]
			}
		}
		if err == nil && of != d.base.String() {
			err = errors.New("it is a page of another feed")
		}
		if err != nil {
			return nil, cmdline.Hint(fmt.Errorf("%s: %w", d.path(name), err),
				"remove the pages if nobody needs them, or publish to another directory")
		}
	}
	return there, nil
}

// removePages removes the pages after the last one.
func (d *documents) removePages(there map[int]bool, last int) error {
	for _, n := range slices.Backward(slices.Sorted(maps.Keys(there))) {
		if n <= last {
			continue
		}
		if err := d.disk.remove(d.path(d.numbered(pages, n))); err != nil {
			return err
		}
	}
	return nil
}
