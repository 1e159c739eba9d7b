package hub

import (
	_ "embed"
	"html/template"
	"net/http"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/rsscloud"
)

//go:embed page.html
var pageText string

var pageTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"time": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
		"link": fetch.IsHTTP,
	}).Parse(pageText))
})

// pageData is what the page shows.
type pageData struct {
	Public, Base  string // the URL, and its path
	Subscriptions int
	Feeds         []pageFeed
	Events        []event
	Saves         bool
	Cloud         struct{ Domain, Port, Path, Protocol string }
}

// pageFeed is a feed that was updated of late.
type pageFeed struct {
	URL     string
	Updated time.Time
}

// page shows what the hub does: feeds that were updated of late, recent events, and
// forms to try a ping and a registration. It has no JavaScript, and shows nothing of a
// callback but its host.
func (h *Hub) page(w http.ResponseWriter, r *http.Request) {
	d := pageData{Base: h.base(), Events: h.log.Recent(), Saves: h.users != nil}
	if h.opts.Public != nil {
		d.Public = h.public("")
		d.Cloud.Domain, d.Cloud.Port, d.Cloud.Path = h.opts.Public.Hostname(), fetch.Port(h.opts.Public), h.base()+"/rsscloud/pleaseNotify"
		if d.Cloud.Protocol = rsscloud.HTTPPost; h.opts.Public.Scheme == "https" && d.Cloud.Port != "443" {
			d.Cloud.Protocol = rsscloud.HTTPSPost
		}
	}
	h.mu.Lock()
	d.Subscriptions = h.counts.all
	h.mu.Unlock()
	seen := map[string]bool{}
	for _, e := range d.Events {
		if e.What == "updated" && !seen[e.Feed] {
			seen[e.Feed] = true
			d.Feeds = append(d.Feeds, pageFeed{e.Feed, e.Time})
		}
	}
	head := w.Header()
	head.Set("Content-Type", "text/html; charset=utf-8")
	head.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	head.Set("Referrer-Policy", "no-referrer")
	if r.Method == http.MethodHead {
		return
	}
	_ = pageTemplate().Execute(w, d) // the connection is gone
}
