package sharer

import (
	"math/rand/v2"
	"testing"

	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/protocol/feedsync"
)

// The contents of items are written in canonical form for any text, because they are stored
// without being parsed.
func TestContentIsCanonical(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		parts := []string{"a", " ", "\t", "\n", "\r", "\r\n", "&", "<", ">", `"`, "'", "]]>", "\x01", "\x7f", "\x80", "é", "\ufffe", "\ufffd", "😀", "&amp;", "http://a.example/?b=c&d"}
		s := ""
		for range r.IntN(6) {
			s += parts[r.IntN(len(parts))]
		}
		return s
	}
	for range 20_000 {
		id := "80af8e84e5ef7ae6b68acb8d1987e58e3e5731dd:0000000000000001:S"
		sub := &subscriptions.Subscription{ID: text(), URL: text(), Name: text(), Alias: text(), Link: "http://a.example/" + text(), Categories: []string{text(), text(), text()}}
		for _, content := range [][]byte{
			markContent(id, 'S', &entryText{title: text(), link: "http://a.example/" + text(), feedID: text(), id: text()}),
			content(sub), folderContent(text()), blankMark(id, 'S'),
		} {
			if got := feedsync.Canonical(content); got != string(content) {
				t.Fatalf("%q, and in canonical form %q", content, got)
			}
		}
	}
}
