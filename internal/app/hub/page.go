package hub

import (
	_ "embed"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/content"
	"github.com/lektordir/lektor/internal/protocol/rsscloud"
	"github.com/lektordir/lektor/internal/text/feedurl"
)

//go:embed page.html
var pageText string

// formStyle aligns labels and inputs side by side, or one below the other on a phone.
const formStyle = `
form { display: grid; gap: .4rem 1rem; align-items: center; }
form input, form select, form button { font: inherit; min-width: 0; max-width: 100%; padding: .35rem .5rem; border: 1px solid var(--soft); border-radius: .25rem; background: var(--page); color: var(--text); }
form button { justify-self: start; padding-inline: 1.2rem; }
@media (min-width: 40rem) {
	form { grid-template-columns: minmax(10rem, 16rem) 1fr; }
	form button { grid-column: 2; }
}
`

var pageTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"time": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
		"iso":  func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	}).Parse(pageText))
})

// frame is the data that all pages share.
type frame struct {
	Title, Base string // Base is the path of the hub
	Style       template.CSS
}

// pageData is the data of the main page.
type pageData struct {
	frame
	Public        string // URL
	Subscriptions int
	Feeds         []pageEvent // recently updated
	Events        []pageEvent
	Cloud         struct{ Domain, Port, Path, Protocol string }
}

// answerData is the data of the answer to a form.
type answerData struct {
	frame
	Success bool
	Message string
}

// pageEvent is a line of the log as the page shows it to strangers.
type pageEvent struct {
	Time        time.Time
	What, About string
	Feed, Link  string // Link is empty if Feed is not a complete URL
}

// harmless are the events that the page shows completely. Others name hosts of subscribers,
// or callers.
var harmless = []string{"updated", "pinged", "resumed", "later", "missed", "swept"}

// shown returns an event without private data: the query of a feed's URL, which may be a
// password, names of users, and hosts of subscribers.
func (h *Hub) shown(e event) (p pageEvent, ok bool) {
	p = pageEvent{Time: e.Time, What: e.What, Feed: e.Feed}
	if slices.Contains(harmless, e.What) {
		p.About = e.About
	} else if e.Feed == "" {
		return p, false
	}
	bare, _, cut := strings.Cut(e.Feed, "?")
	own := strings.HasPrefix(e.Feed, h.public(savedPath))
	switch {
	case own:
		p.Feed = h.public(savedPath) + "…"
	case cut:
		p.Feed = bare + "?…"
	case feedurl.IsHTTP(e.Feed):
		p.Link = e.Feed
	}
	return p, true
}

// frame returns the frame of a page.
func (h *Hub) frame(title string) frame {
	return frame{Title: title, Base: h.base(), Style: template.CSS(content.StyleSheet + formStyle)}
}

// page serves the main page: recently updated feeds, events, and forms to try a ping and a
// registration. It has no JavaScript.
func (h *Hub) page(w http.ResponseWriter, r *http.Request) {
	d := pageData{frame: h.frame("rssCloud and WebSub hub"), Public: h.public("")}
	d.Cloud.Domain, d.Cloud.Port = h.opts.Public.Hostname(), feedurl.Port(h.opts.Public)
	d.Cloud.Path = h.base() + "/rsscloud/pleaseNotify"
	if d.Cloud.Protocol = rsscloud.HTTPPost; h.opts.Public.Scheme == "https" && d.Cloud.Port != "443" {
		d.Cloud.Protocol = rsscloud.HTTPSPost
	}
	d.Subscriptions = h.counts.get()
	updatedFeeds := map[string]bool{}
	for _, e := range h.log.Recent() {
		p, ok := h.shown(e)
		if !ok {
			continue
		}
		d.Events = append(d.Events, p)
		if e.What == "updated" && !updatedFeeds[e.Feed] {
			updatedFeeds[e.Feed] = true
			d.Feeds = append(d.Feeds, p)
		}
	}
	writePage(w, r, "page", d)
}

// writePage writes a page with its template.
func writePage(w http.ResponseWriter, r *http.Request, name string, data any) {
	head := w.Header()
	head.Set("Content-Type", "text/html; charset=utf-8")
	head.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	head.Set("Referrer-Policy", "no-referrer")
	if r.Method == http.MethodHead {
		return
	}
	_ = pageTemplate().ExecuteTemplate(w, name, data) // fails if the connection is gone
}
