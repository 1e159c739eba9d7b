package fromfeed_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/lektordir"
	"github.com/lektordir/lektor/lektordir/fromfeed"
)

const document = `<rss version="2.0"><channel><title>Wren</title><item>
<guid>1</guid><title>On frost</title><author>ann@example.org (Ann)</author><author>Bob</author>
<enclosure url="https://example.org/frost.mp3" type="audio/mpeg" length="9"/>
</item></channel></rss>`

// A fetcher reads a document, and delivers its entries. Another one would get the document from url.
func Example() {
	tmp, err := os.MkdirTemp("", "lektor-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	dir, err := lektordir.Create(filepath.Join(tmp, "feeds"), nil)
	if err != nil {
		log.Fatal(err)
	}
	const url = "https://example.org/feed"
	feed, err := feedconv.Parse(strings.NewReader(document), feedconv.Options{URL: url})
	if err != nil {
		log.Fatal(err)
	}
	entries := make([]lektordir.Entry, len(feed.Entries))
	for i := range entries {
		entries[i] = *fromfeed.Entry(&feed.Entries[i])
	}
	as := fromfeed.Feed(lektordir.NormalizeID(url), feed)
	found, err := dir.Deliver(context.Background(), as, lektordir.UpdateNew, entries...)
	if err != nil {
		log.Fatal(err)
	}
	for _, ref := range found.New {
		e, err := dir.ReadEntry(ref, lektordir.AllFields)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(dir.FeedOf(ref).Title(), "-", e.Title, "-", e.Author, "-", e.Enclosures[0].URL)
	}
	// Output:
	// Wren - On frost - Ann <ann@example.org>, Bob - https://example.org/frost.mp3
}
