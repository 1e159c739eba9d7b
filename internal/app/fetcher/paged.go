package fetcher

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/feeds/feedstage"
	"github.com/lektordir/lektor/internal/feeds/spool"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/protocol/rfc5005"
)

// AllPages selects all pages of a feed.
const AllPages = -1

// pages walks through the pages of a feed, whose first page was delivered already. Pages are not
// recorded, as they change all the time (RFC 5005, section 3).
func (w *walk) pages(ctx context.Context) error {
	linked := w.h.Linked()
	guessed := linked.Kind == rfc5005.Plain && linked.Next != ""
	next, from := linked.Next, w.st.Document.URL()
	visited := map[string]bool{rfc5005.Normal(from): true, rfc5005.Normal(w.req.URL): true}
	if next == "" {
		w.r.report.Info("%s: it has no pages", w.name)
		return nil
	}
	var stop *rfc5005.Stop
	entries, size := 0, int64(0)
	for page := 2; next != "" && (w.t.want.Pages == AllPages || page <= w.t.want.Pages); page++ {
		reason := w.refused(from, next, visited, entries, size)
		var doc *spool.Spooled
		var feed *feedconv.Feed
		var err error
		if reason == "" {
			visited[next] = true
			if doc, feed, err = w.page(ctx, next, from); ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if guessed && absent(err) {
				break // the previous page was the last one
			}
			if err != nil {
				reason = w.reason(next, err)
			}
		}
		if reason != "" {
			stop = &rfc5005.Stop{URL: next, Reason: reason}
			break
		}
		linked := rfc5005.Page(feed, doc.Final)
		if !w.further(feed) {
			// A server may send another page in place of one that does not exist.
			if w.t.reason == Named && linked.Next != "" {
				w.r.report.Info("%s: page %d has no entry that is not on the pages before it; the pages after it were not requested", w.name, page)
			}
			break
		}
		entries += len(feed.Entries)
		size += int64(len(doc.Body))
		if err := w.spool.Put(doc); err != nil {
			return err
		}
		w.enqueue(next, rfc5005.Stored{}, feed)
		from, next = linked.URL, linked.Next
		if next == "" && guessed {
			next = rfc5005.PageURL(w.st.Document.URL(), page+1)
		}
	}
	if err := w.deliver(ctx, rfc5005.Baseline{}); err != nil {
		return err
	}
	if stop != nil {
		w.report(true, stop)
	}
	return nil
}

// refused returns the reason why a page must not be requested, or "". entries and size count the
// entries and bytes of the pages before it.
func (w *walk) refused(from, url string, visited map[string]bool, entries int, size int64) string {
	limits := w.r.opts.History
	switch err := rfc5005.Check(from, url); {
	case err != nil:
		return err.Reason
	case visited[url]:
		return "the pages form a loop: this one was read before"
	case limits.Documents > 0 && w.sum.Requested >= limits.Documents, limits.Entries > 0 && entries >= limits.Entries,
		limits.Bytes > 0 && size >= limits.Bytes:
		return fmt.Sprintf("the walk ended here; --%s, --%s and --%s raise the limits", rfc5005.FlagDocuments,
			rfc5005.FlagEntries, rfc5005.FlagBytes)
	}
	return ""
}

// page requests the page at url, which the page at from names, and parses it.
func (w *walk) page(ctx context.Context, url, from string) (*spool.Spooled, *feedconv.Feed, error) {
	doc, err := w.get(ctx, url, from)
	if err != nil {
		return nil, nil, err
	}
	feed, err := w.read(ctx, doc)
	return doc, feed, err
}

// absent reports whether an error means that the document does not exist.
func absent(err error) bool {
	var status *httpmsg.StatusError
	return errors.As(err, &status) && (status.Status == http.StatusNotFound || status.Status == http.StatusGone)
}

// further reports whether a page has an entry that is not on the pages before it.
func (w *walk) further(feed *feedconv.Feed) bool {
	for id := range feedstage.Document(feed, "", nil).Versions() {
		if !w.choice.Has(id) {
			return true
		}
	}
	return false
}
