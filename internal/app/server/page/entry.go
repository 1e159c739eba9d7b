package page

import (
	"cmp"
	"errors"
	"html/template"
	"io/fs"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/lektordir/lektor/internal/app/server"
	"github.com/lektordir/lektor/internal/content"
	"github.com/lektordir/lektor/internal/content/htmlsafe"
	"github.com/lektordir/lektor/internal/content/htmltext"
	"github.com/lektordir/lektor/internal/protocol/greader"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// link is a link of an entry.
type link struct{ URL, Text string }

// media is a file of an entry.
type media struct {
	link
	About string // type and size, see [content.About]
	Kind  string // audio, video, or "" for a file without a player
}

// entryData is the data of an entry.
type entryData struct {
	scope
	Key, Title     string
	Read, Star     bool
	MarkRead       bool // it is marked as read when it is shown
	Feed           link
	About          about
	Body           body
	Also           []link // entries of other feeds that have the same link
	Previous, Next string // URLs
	List, Back     string
}

// about is what the page says about an entry.
type about struct {
	Lang, Age, Date, Time, Author string
	Site, Comments                string // URLs
	Media                         []media
	Replies, Words                []link
}

// body is the content of an entry.
type body struct {
	Icon    string        // URL; "" for none
	HTML    template.HTML // by package htmlsafe
	Images  string        // URL of the page with images; "" for none
	Minutes int           // of reading
}

// entry shows an entry.
func (c *visit) entry() error {
	e, ok := c.v.Item(parseKey(c.form.Get("id")))
	if !ok {
		c.fail(http.StatusNotFound, "The entry is gone. Its feed may have replaced it.")
		return nil
	}
	s := scopeOf(c.form.Get("in"), c.form)
	r := c.v.Store.Record(e.Ref())
	err := r.Read(lektordir.AllFields &^ lektordir.FieldFeedContent)
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, new(*lektordir.MalformedError)) {
		c.fail(http.StatusNotFound, "The entry cannot be read.")
		return nil
	}
	if err != nil {
		return err
	}
	key := showKey(e.Key)
	d := entryData{scope: s, Key: key, Title: r.Title(), Read: !e.Unread(), Star: e.Has(starred()),
		MarkRead: !c.o.KeepUnread && e.Unread(),
		Feed:     link{scope{In: "unread", Feed: e.Feed.Hash}.URL(), server.Title(e.Feed)},
		About:    c.about(r), Body: c.body(s, e, r),
		Back: s.url("entry", "id", key), List: s.URL() + "#e" + key}
	for _, e := range c.v.Elsewhere(r) {
		d.Also = append(d.Also, link{s.url("entry", "id", showKey(e.Key)), server.Title(e.Feed)})
	}
	if d.Previous, d.Next, err = c.neighbours(s, e.Key); err != nil {
		return err
	}
	return c.show(http.StatusOK, "entry", frame{Title: d.Title, In: s.In, Main: d})
}

// about returns what the page says about an entry.
func (c *visit) about(r *entrystore.Record) (d about) {
	own := entrystore.Own(r.Get(0))
	feed := r.Feed()
	published := r.Date().In(c.v.Store.Now.Location())
	d.Lang = content.Language(cmp.Or(own.Language, feed.Language))
	d.Age, d.Date = age(published, c.v.Store.Now), published.Format("Monday, 2 January 2006, 15:04")
	d.Time = published.Format(time.RFC3339)
	d.Author = content.Authors(feedurl.RedactText(cmp.Or(own.Author, feed.Author)), false)
	d.Site, d.Comments = entrystore.Followable(own.URL()), entrystore.Followable(own.Comments)
	for _, to := range own.InReplyTo {
		if u := feedurl.Public(cmp.Or(entrystore.Followable(to.URL), entrystore.Followable(to.Ref))); u != "" {
			d.Replies = append(d.Replies, link{u, feedurl.Brief(u)})
		}
	}
	for _, word := range own.Categories {
		if word = termsafe.Line(word); word != "" {
			d.Words = append(d.Words, link{scope{In: "search", Q: "category:" + query.Value(word)}.URL(), word})
		}
	}
	for _, f := range own.Enclosures {
		u := htmlsafe.URL(f.URL)
		if u == "" {
			continue
		}
		m := media{link: link{u, feedurl.Brief(u)}}
		_, m.About = content.About(f)
		if kind, _, _ := strings.Cut(query.EnclosureType(f), "/"); kind == "audio" || kind == "video" {
			m.Kind = kind
		}
		d.Media = append(d.Media, m)
	}
	return d
}

// wordsPerMinute is the speed of a reader.
const wordsPerMinute = 230

// body returns the content of an entry, with images if the user wants them.
func (c *visit) body(s scope, e server.Entry, r *entrystore.Record) (b body) {
	own := entrystore.Own(r.Get(0))
	images := c.o.Images == "always" || c.o.Images == "ask" && c.form.Get("images") != ""
	clean := func(images bool) string {
		return htmlsafe.Clean(own.Content, own.Type, htmlsafe.Options{Base: cmp.Or(own.URL(), e.Feed.About.Link,
			e.Feed.About.ID), NoImages: !images})
	}
	text := clean(images)
	if c.o.Images == "ask" && !images && text != clean(true) {
		b.Images = s.url("entry", "id", showKey(e.Key), "images", "1")
	}
	if strings.TrimSpace(text) == "" {
		text = htmlsafe.Clean([]byte(own.Summary), "text/plain", htmlsafe.Options{})
	}
	text += htmlsafe.Podcast(own, r.Kept)
	b.HTML, b.Minutes = template.HTML(text), readingTime(htmltext.Text(own.Content, own.Type))
	c.policy(images)
	if c.o.Images == "always" {
		b.Icon = htmlsafe.URL(e.Feed.About.Image)
	}
	return b
}

// readingTime returns how many minutes a text takes; two ideographs count as a word.
func readingTime(text string) int {
	words, ideographs := len(strings.Fields(text)), 0
	for _, r := range text {
		if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) {
			ideographs++
		}
	}
	return (words + ideographs/2 + wordsPerMinute - 1) / wordsPerMinute
}

// neighbours returns the URLs of the previous and the next entry of a list, "" for none.
func (c *visit) neighbours(s scope, key greader.ID) (previous, next string, err error) {
	for _, side := range []struct {
		url          *string
		from, before greader.ID
		rising       bool
	}{{&previous, key + 1, 0, true}, {&next, 0, key, false}} {
		list, err := c.entries(s, side.from, side.before, side.rising)
		if err != nil {
			return "", "", err
		}
		for e := range list {
			*side.url = s.url("entry", "id", showKey(e.Key))
			break
		}
	}
	return previous, next, nil
}
