package feedconv

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lektordir/lektor/feedconv/internal/dates"
	"github.com/lektordir/lektor/feedconv/internal/tidy"
	"github.com/lektordir/lektor/internal/text/markup"
	"github.com/lektordir/lektor/internal/text/scan"
)

// draft is an entry before finish applies the rules that are the same for all formats. Each list
// has its best candidate first.
type draft struct {
	entry     Entry
	titles    []text
	contents  []text
	summaries []text
	published []string
	updated   []string
	tail      string // HTML that follows the content
}

// maxGrowth is the number of bytes that resolving URLs may add to a document without HTML.
const maxGrowth = 1 << 20

// maxTitle is the maximum number of characters of a title.
const maxTitle = 10000

// add finishes an entry and appends it to f. An empty entry, or one with nothing but rights and a
// license, is dropped, and add returns false. If an entry has nothing but other links, the first of
// these becomes its link.
//
// document is the URL of the document. growth is the number of bytes that resolving URLs may still
// add to HTML, and half of each HTML more.
func (f *Feed) add(d *draft, document *url.URL, growth *int) bool {
	e := &d.entry
	lists := max(len(e.Authors), len(e.Contributors), len(e.Categories), len(e.Enclosures), len(e.Links),
		len(e.InReplyTo)) > maxList
	d.finish()
	for _, part := range []struct{ html, mime *string }{{&e.Content, &e.Type}, {&e.Summary, &e.SummaryType}} {
		if markup.IsMarkup(*part.mime) && *growth > 0 {
			*growth += len(*part.html) / 2
			*part.html = scan.ResolveHTML(*part.html, d.base(document, f.Link), false, growth)
			if *growth <= 0 {
				f.warnOnce(tidy.TooManyReferences)
			}
		}
	}
	if e.saysNothing() {
		i := slices.IndexFunc(e.Links, func(l Link) bool { return l.Rel != "license" })
		if i < 0 {
			return false
		}
		e.Link, e.ID = e.Links[i].URL, e.Links[i].URL
	}
	if lists {
		f.warnOnce("an entry has more than %d authors, contributors, categories, enclosures, links or entries that it replies to; the rest was left out", maxList)
	}
	if e.ID == "" {
		e.ID = d.digest()
	}
	e.Title = f.cutTitle(e.Title)
	f.Entries = append(f.Entries, *e)
	return true
}

// saysNothing reports whether an entry is empty, apart from Links and Rights.
func (e *Entry) saysNothing() bool {
	return e.GUID == "" && e.Link == "" && e.Title == "" && e.Content == "" && e.PubDateRaw == "" &&
		e.PubDate.IsZero() &&
		e.Comments == "" && e.Image == "" && e.Source == nil &&
		len(e.Authors)+len(e.Contributors)+len(e.Categories)+len(e.Enclosures)+
			len(e.InReplyTo)+len(e.Extensions)+len(e.Attributes) == 0
}

// base returns the base of relative URLs in HTML without one: the entry's page, if it is on the host
// of the document or of the feed's site, else the site, else the document.
func (d *draft) base(document *url.URL, link string) *url.URL {
	site, page := markup.Base(document, link), markup.Base(nil, d.entry.Link)
	for _, near := range []*url.URL{document, site} {
		if page != nil && near != nil && strings.EqualFold(page.Host, near.Host) {
			return page
		}
	}
	return site
}

// cutTitle shortens a title that is too long, and adds a warning.
func (f *Feed) cutTitle(s string) string {
	if len(s) <= maxTitle || utf8.RuneCountInString(s) <= maxTitle {
		return s
	}
	f.warnOnce("a title has more than %d characters; the rest was left out", maxTitle)
	n := 0
	for i := range s {
		if n == maxTitle {
			return strings.TrimSpace(s[:i])
		}
		n++
	}
	return s
}

// finish turns a draft into an entry. If the ID has to be a digest, it stays empty.
func (d *draft) finish() {
	e := &d.entry
	for _, t := range d.titles {
		if e.Title = t.title(); e.Title != "" {
			break
		}
	}
	d.finishContent()
	d.finishDates()
	e.GUID = markup.CleanLine(e.GUID)
	e.Link, e.Comments, e.Image = markup.Link(e.Link), markup.Link(e.Comments), markup.Link(e.Image)
	e.Language = language(e.Language)
	e.Authors, e.Contributors = persons(e.Authors), persons(e.Contributors)
	e.Categories, e.Terms = uniqueStrings(e.Categories), uniqueTerms(e.Terms)
	e.Terms = slices.DeleteFunc(e.Terms, func(c Category) bool { return !slices.Contains(e.Categories, c.Name) })
	e.Enclosures = uniqueEnclosures(e.Enclosures)
	e.Links = uniqueLinks(e.Links)
	e.InReplyTo = uniqueReplies(e.InReplyTo)
	switch {
	case e.GUID != "":
		e.ID = e.GUID
	case e.Link != "":
		e.ID = e.Link
	}
	if src := e.Source; src != nil {
		src.ID, src.Title = markup.CleanLine(src.ID), oneLine(src.Title)
		src.URL, src.Link, src.Image = markup.Link(src.URL), markup.Link(src.Link), markup.Link(src.Image)
		if src.Authors = persons(src.Authors); src.empty() {
			e.Source = nil
		}
	}
}

// persons removes repeated persons, and URLs that are not links.
func persons(list []Person) []Person {
	for i := range list {
		list[i].URL = markup.Link(list[i].URL)
	}
	return uniquePersons(list)
}

// finishContent sets the content to the first that is not blank, and the summary to the first that
// differs from the content.
func (d *draft) finishContent() {
	e := &d.entry
	var content, summary text
	for _, t := range append(d.contents, d.summaries...) {
		if t = t.unwrapped(); strings.TrimSpace(t.value) != "" {
			content = t
			break
		}
	}
	for _, t := range d.summaries {
		if t = t.unwrapped(); strings.TrimSpace(t.value) != "" && t.value != content.value {
			summary = t
			break
		}
	}
	e.Content, e.Type = markup.Clean(content.value), cmp.Or(markup.CleanLine(content.mime), markup.TypePlain)
	if d.tail != "" {
		e.Content, e.Type = markup.AsHTML(e.Content, e.Type)+d.tail, markup.TypeHTML
	}
	if summary.value != "" {
		e.Summary, e.SummaryType = markup.Clean(summary.value), markup.CleanLine(summary.mime)
	}
}

// finishDates reads the dates.
func (d *draft) finishDates() {
	e := &d.entry
	var published, updated string // as written
	e.PubDate, published = firstDate(d.published)
	e.Updated, updated = firstDate(d.updated)
	switch {
	case e.PubDate.IsZero() && e.Updated.IsZero():
		e.PubDateRaw = cmp.Or(published, updated)
	case e.PubDate.IsZero():
		e.PubDate = e.Updated
	case e.Updated.IsZero():
		e.Updated = e.PubDate
	}
}

// digest returns an id made from the text of an entry. Each part is hashed with its length, so that
// different parts never produce the same bytes.
func (d *draft) digest() string {
	h := sha256.New()
	date := d.entry.PubDateRaw
	if !d.entry.PubDate.IsZero() {
		date = d.entry.PubDate.Format(time.RFC3339Nano)
	}
	for _, part := range []string{d.entry.Title, date, d.entry.Content} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return "urn:sha256:" + hex.EncodeToString(h.Sum(nil))
}

// firstDate returns the first date that can be parsed. If there is none, raw is the first date as
// written.
func firstDate(candidates []string) (t time.Time, raw string) {
	for _, s := range candidates {
		if s = markup.CleanLine(s); s == "" {
			continue
		}
		if t, ok := dates.Parse(s); ok {
			return t, ""
		}
		raw = cmp.Or(raw, s)
	}
	return time.Time{}, raw
}

// finishFeed applies to the feed the rules that are the same for all formats.
func finishFeed(f *Feed, opts Options) {
	f.ID, f.Link, f.Image = markup.CleanLine(f.ID), markup.Link(f.Link), markup.Link(f.Image)
	f.Title = f.cutTitle(f.Title)
	f.Links = slices.DeleteFunc(f.Links, func(l Link) bool {
		if markup.Link(l.URL) != "" {
			return false
		}
		l.URL = markup.CleanLine(l.URL)
		f.Refused = append(f.Refused, l)
		return true
	})
	if max(len(f.Authors), len(f.Categories)) > maxList {
		f.warnOnce("the feed has more than %d authors or categories; the rest was left out", maxList)
	}
	f.Authors = persons(f.Authors)
	f.Categories = uniqueStrings(f.Categories)
	if f.Language == "" {
		first, _, _ := strings.Cut(opts.ContentLanguage, ",")
		f.Language = first
	}
	f.Language = language(f.Language)
	if f.Updated.IsZero() {
		f.Updated = f.PubDate
	} else if f.PubDate.IsZero() {
		f.PubDate = f.Updated
	}
}

// language returns a language tag with hyphens: "en_US" becomes "en-US".
func language(s string) string {
	// An HTTP header may hold any bytes.
	s = strings.ReplaceAll(markup.CleanLine(strings.ToValidUTF8(s, "")), "_", "-")
	if len(s) > 35 || strings.ContainsAny(s, " \t\n<>/") { // RFC 5646, section 4.4.1
		return ""
	}
	return s
}

// unique returns the first elements of a list with each key, at most maxList. Elements
// whose key is not ok are left out.
func unique[T any, K comparable](list []T, key func(*T) (k K, ok bool)) []T {
	var out []T
	seen := make(map[K]bool, len(list))
	for i := range list {
		if k, ok := key(&list[i]); ok && !seen[k] && len(out) < maxList {
			seen[k] = true
			out = append(out, list[i])
		}
	}
	return out
}

// uniqueStrings makes each string one line, and drops empty and repeated strings.
func uniqueStrings(list []string) []string {
	return unique(list, func(s *string) (string, bool) {
		*s = oneLine(*s)
		return *s, *s != ""
	})
}

// uniqueTerms keeps, for each name, the first category that has more than a name.
func uniqueTerms(list []Category) []Category {
	return unique(list, func(c *Category) (string, bool) {
		for _, s := range []*string{&c.Name, &c.Label, &c.Term} {
			*s = oneLine(*s)
		}
		if c.Scheme = markup.CleanLine(c.Scheme); c.Label == c.Name {
			c.Label = ""
		}
		return c.Name, c.Name != "" && c.Scheme+c.Label+c.Term != ""
	})
}

// uniqueEnclosures merges enclosures with the same URL: type and length are the first that are
// known.
func uniqueEnclosures(list []Enclosure) []Enclosure {
	var out []Enclosure
	at := make(map[string]int, len(list))
	for _, e := range list {
		e.URL, e.Type = markup.Link(e.URL), markup.CleanLine(e.Type)
		if e.URL == "" || len(out) == maxList {
			continue
		}
		i, ok := at[e.URL]
		if !ok {
			at[e.URL] = len(out)
			out = append(out, e)
			continue
		}
		out[i].Type = cmp.Or(out[i].Type, e.Type)
		if out[i].Length < 0 {
			out[i].Length = e.Length
		}
	}
	return out
}

// uniqueLinks drops repeated links, and links that a reader must not follow.
func uniqueLinks(list []Link) []Link {
	return unique(list, func(l *Link) (Link, bool) {
		l.URL = markup.Link(l.URL)
		return *l, l.URL != ""
	})
}

// uniqueReplies keeps the first ReplyTo with each Ref. If a feed has only the URL, that is the Ref.
func uniqueReplies(list []ReplyTo) []ReplyTo {
	return unique(list, func(r *ReplyTo) (string, bool) {
		r.URL, r.Type, r.Source = markup.Link(r.URL), markup.CleanLine(r.Type), markup.Link(r.Source)
		r.Ref = cmp.Or(markup.CleanLine(r.Ref), r.URL)
		return r.Ref, r.Ref != ""
	})
}

// enclosure returns an Enclosure made of attributes. Feeds write the length 0 if they do not know
// it, so 0 counts as unknown. A type without a slash, such as the npm package rss writes for a URL with a
// query, is none.
func enclosure(href, mediaType, length string) Enclosure {
	e := Enclosure{URL: href, Type: markup.CleanLine(mediaType), Length: -1}
	if !strings.Contains(e.Type, "/") {
		e.Type = ""
	}
	if n, err := strconv.ParseUint(strings.TrimSpace(length), 10, 60); err == nil && n > 0 {
		e.Length = int64(n)
	}
	return e
}
