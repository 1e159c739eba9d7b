package feedconv_test

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/lektordir/lektor/feedconv"
)

// A broken document with few fields: the entries that could be read, and warnings with the
// places of the defects.
func ExampleParse() {
	document := `<rss version="2.0" xmlns:podcast="https://podcastindex.org/namespace/1.0">
<channel><title>Wren &amp;amp; Co</title>
<item>
  <title>On frost
  <link>/frost</link>
  <pubDate>Wed, 16 Nov 2022 00:38:15 +0100</pubDate>
  <podcast:location geo="geo:52.5,13.4">Berlin</podcast:location>
  <description>&lt;p>It is &lt;a href="cold">cold&lt;/a>.</description>
</item>
</channel></rss>`
	feed, err := feedconv.Parse(strings.NewReader(document), feedconv.Options{URL: "https://example.org/feed"})
	if err != nil {
		fmt.Println(err) // "not a feed: it is an HTML page …", or what reading said
		return
	}
	fmt.Printf("%s (%s)\n", feed.Title, feed.Format)
	for _, e := range feed.Entries {
		fmt.Println(e.Title)
		fmt.Println(e.Link)
		fmt.Println(e.Content)
		fmt.Println(feedconv.PlainText(e.Content, e.Type))
		for _, x := range e.Extensions {
			fmt.Println(x.Namespace, x.Name, x.Text)
		}
	}
	for _, w := range feed.Warnings {
		fmt.Println(w)
	}
	// Output:
	// Wren & Co (rss2.0)
	// On frost
	// https://example.org/frost
	// <p>It is <a href="https://example.org/cold">cold</a>.
	// It is cold.
	// https://podcastindex.org/namespace/1.0 location Berlin
	// line 5: <title> is not closed
}

// A feed is written with what its format demands; extensions come with the
// prefix that people know.
func ExampleEncodeRSS() {
	feed := &feedconv.Feed{
		Title: "Wren",
		Link:  "https://example.org/",
		Links: []feedconv.Link{{Rel: "self", URL: "https://example.org/feed"}},
		Entries: []feedconv.Entry{{
			ID:      "https://example.org/frost",
			Link:    "https://example.org/frost",
			Title:   "Frost < snow",
			Content: "<p>It is cold.</p>",
			Type:    "text/html",
			PubDate: time.Date(2022, 11, 16, 0, 38, 15, 0, time.UTC),
			Extensions: []feedconv.Extension{{
				Namespace: "https://podcastindex.org/namespace/1.0", Name: "location", Text: "Berlin",
				Attributes: []feedconv.Attribute{{Name: "geo", Value: "geo:52.5,13.4"}},
			}},
		}},
	}
	if err := feedconv.EncodeRSS(os.Stdout, feed); err != nil {
		fmt.Println(err)
	}
	// Output:
	// <?xml version="1.0" encoding="UTF-8"?>
	// <rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/" xmlns:media="http://search.yahoo.com/mrss/" xmlns:fh="http://purl.org/syndication/history/1.0" xmlns:podcast="https://podcastindex.org/namespace/1.0">
	//   <channel>
	//     <title>Wren</title>
	//     <link>https://example.org/</link>
	//     <description></description>
	//     <atom:link rel="self" href="https://example.org/feed"/>
	//     <item>
	//       <title>Frost &lt; snow</title>
	//       <link>https://example.org/frost</link>
	//       <guid isPermaLink="true">https://example.org/frost</guid>
	//       <pubDate>Wed, 16 Nov 2022 00:38:15 GMT</pubDate>
	//       <description>&lt;p>It is cold.&lt;/p></description>
	//       <podcast:location geo="geo:52.5,13.4">Berlin</podcast:location>
	//     </item>
	//   </channel>
	// </rss>
}

func ExamplePlainText() {
	fmt.Println(feedconv.PlainText(`<p>Fish &amp; chips</p><script>track()</script><p>for <b>t</b>wo`, "text/html"))
	// Output: Fish & chips for two
}
