// Package server implements lektor-serve: the Google Reader API for the lektor-dirs of its users.
//
// It is a viewer. A [library] has the names of entries from package catalog; marks are renames by package
// undo. The messages are in package
// greader. The server keeps only users and tokens, see package accounts. A [request] is one of a client.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/app/server/accounts"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/http/httpserver"
	"github.com/lektordir/lektor/internal/protocol/greader"
)

// Options are the options of [Serve], and of a [Server].
type Options struct {
	httpserver.Options
	State    string // directory of users and tokens
	BasePath string // path of the API, "/" for the root
	// TrustedProxies are the networks of proxies whose X-Forwarded-For is trusted.
	TrustedProxies []netip.Prefix
	// AllowPrivate are private networks from which clients may subscribe to feeds.
	AllowPrivate []netip.Prefix
	// Insecure serves others than this machine without TLS.
	Insecure bool
	// AllCategories shows clients all folders of a feed; otherwise they see the first one.
	AllCategories bool
	// Page returns the page for browsers of a server; nil means none.
	Page func(*Server) Page
	// Verbose reports the requests.
	Verbose bool
	// Now is the clock; the default is time.Now.
	Now func() time.Time
	// After calls a function later; the default is time.AfterFunc.
	After func(time.Duration, func())
	// Sleep waits for a feed that a fetcher has locked; the default is that of
	// [lektordir.Options].
	Sleep func(context.Context, time.Duration) error
}

// Accounts checks users and tokens; see package accounts.
type Accounts interface {
	Login(ctx context.Context, name, password, client string, from netip.Addr) (token string, u accounts.User,
		err error)
	Check(token string) (accounts.User, error)
	Logout(ctx context.Context, token string) error
}

// Page answers the requests of browsers, see package page: for a path below the base path, without slashes around it.
// It returns false if the request is not one of a browser.
type Page func(w http.ResponseWriter, r *http.Request, path string) bool

// Server answers requests. It is safe for concurrent use.
type Server struct {
	opts     Options
	accounts Accounts
	s        *cmdline.Streams
	page     Page
	sync     func(dir string, rels ...string) error // dirfs.SyncMoves

	mu        sync.Mutex
	libraries map[string]*library // by path of the lektor-dir
}

// New returns a server.
func New(o Options, a Accounts, s *cmdline.Streams) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.After == nil {
		o.After = func(d time.Duration, f func()) { time.AfterFunc(d, f) }
	}
	server := &Server{opts: o, accounts: a, s: s, sync: dirfs.SyncMoves, libraries: map[string]*library{}}
	if o.Page != nil {
		server.page = o.Page(server)
	}
	return server
}

// syncDelay is the time for which marks are collected before all are synced by one call.
const syncDelay = time.Second

// syncSoon syncs the renames of marked entries after syncDelay, with those that come until then.
func (s *Server) syncSoon(l *library, feeds map[string]bool) {
	l.unsynced.Lock()
	defer l.unsynced.Unlock()
	if len(feeds) > 0 && len(l.moved) == 0 {
		s.opts.After(syncDelay, func() { s.syncMarks(l) })
	}
	for hash := range feeds {
		for _, dir := range []string{"new/" + hash, "cur/" + hash} {
			if !slices.Contains(l.moved, dir) {
				l.moved = append(l.moved, dir)
			}
		}
	}
}

// syncMarks syncs all renames of marked entries.
func (s *Server) syncMarks(l *library) {
	l.unsynced.Lock()
	moved := l.moved
	l.moved = nil
	l.unsynced.Unlock()
	if err := s.sync(l.dir.Path(), moved...); err != nil {
		s.s.Report.Warn("marks may be lost if the power fails: %v", err)
	}
}

// Close syncs the marks of all users, and closes their lektor-dirs.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.libraries {
		s.syncMarks(l)
		l.names.Close()
		l.elsewhere.running.Wait()
	}
}

// Limits of requests.
const (
	// maxForm is the maximum size of a form in bytes. 10,000 escaped ids have 0.7 MB.
	maxForm = 8 << 20
	// maxAnonymous is the same for a form that has its token in it.
	maxAnonymous = 256 << 10
)

// route is a call of the API.
type route struct {
	do      func(*request) error
	methods string // besides OPTIONS
	open    bool   // needs no token
	ok      bool   // answers "OK" if do returns no error
}

// The methods of routes.
const (
	reads  = "GET, HEAD"
	writes = "POST"
	both   = reads + ", " + writes
)

// routes are the calls by path.
var routes = sync.OnceValue(func() map[string]route {
	all := map[string]route{
		// users paste it, and clients ask it for an icon
		"":                                       {do: nothing, methods: reads, open: true, ok: true},
		"check/compatibility":                    {do: (*request).compatible, methods: reads, open: true},
		"accounts/ClientLogin":                   {do: (*request).login, methods: both, open: true},
		greader.APIPath + "accounts/ClientLogin": {do: (*request).login, methods: both, open: true},
		greader.AtomPath:                         {do: (*request).atom, methods: reads},
		greader.ContentsPath:                     {do: (*request).contents, methods: both},
	}
	for name, r := range map[string]route{
		"token":                  {do: (*request).token, methods: both},
		"user-info":              {do: (*request).userInfo, methods: both},
		"subscription/list":      {do: (*request).subscriptions, methods: both},
		"tag/list":               {do: (*request).tags, methods: both},
		"stream/items/ids":       {do: (*request).ids, methods: both},
		"stream/items/contents":  {do: (*request).items, methods: both},
		"unread-count":           {do: (*request).unreadCounts, methods: both},
		"preference/list":        {do: always("prefs", []string{}), methods: both},
		"preference/stream/list": {do: always("streamprefs", map[string][]string{}), methods: both},
		"friend/list":            {do: always("friends", []string{}), methods: both},
		"subscription/edit":      {do: (*request).editSubscription, methods: writes, ok: true},
		"subscription/quickadd":  {do: (*request).quickAdd, methods: writes},
		"subscription/export":    {do: (*request).export, methods: reads},
		"subscription/import":    {do: (*request).importList, methods: writes, ok: true},
		"rename-tag":             {do: (*request).renameTag, methods: writes, ok: true},
		"disable-tag":            {do: (*request).disableTag, methods: writes, ok: true},
		"edit-tag":               {do: (*request).editTag, methods: writes, ok: true},
		"mark-all-as-read":       {do: (*request).markAll, methods: writes, ok: true},
	} {
		all[greader.APIPath+name] = r
	}
	return all
})

// nothing is the route of a call that only answers.
func nothing(*request) error { return nil }

// always returns a route that answers each request with the same field.
func always(field string, value any) func(*request) error {
	return func(c *request) error { return c.json(map[string]any{field: value}) }
}

// httpError is the answer to a request that failed.
type httpError struct {
	status  int
	message string
}

func (e *httpError) Error() string { return e.message }

// bad returns an answer with status 400.
func bad(format string, args ...any) error {
	return &httpError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// ServeHTTP answers a request. It cleans the path itself, because [http.ServeMux] would redirect
// clients that send "//" or the URL of a feed in the path.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &request{Server: s, w: w, r: r}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "private, no-cache")
	err := c.serve()
	if s.opts.Verbose {
		defer func() { s.s.Report.Info("%s %s: %s", r.Method, c.name, c.status(err)) }()
	}
	if err == nil {
		return
	}
	refused, ok := errors.AsType[*httpError](err)
	switch {
	case c.gone || r.Context().Err() != nil:
		return
	case !ok:
		s.s.Report.Warn("%v", err) // no error, which would be the exit status of the server
		refused = &httpError{http.StatusInternalServerError,
			"the lektor-dir cannot be read or written; the log of the server says why"}
	}
	if c.sent {
		panic(http.ErrAbortHandler) // an answer that ends too early must not look complete
	}
	w.Header().Del("Content-Encoding")
	w.Header().Del("ETag")
	w.Header().Del("Content-Disposition")
	http.Error(w, refused.message, refused.status)
}

// status returns the result of a request, for a message.
func (c *request) status(err error) string {
	if err == nil {
		return "answered"
	}
	if refused, ok := errors.AsType[*httpError](err); ok {
		return strconv.Itoa(refused.status)
	}
	return "failed"
}

// serve finds the route of a request, checks the token, and answers.
func (c *request) serve() error {
	path, stream, ok := greader.SplitPath(c.r.URL.EscapedPath(), c.opts.BasePath)
	if ok && c.page != nil && c.page(c.w, c.r, path) {
		c.name = "the page"
		return nil
	}
	r, found := routes()[path]
	if !ok || !found {
		c.name = "an unknown path"
		return &httpError{http.StatusNotFound, "404 page not found"}
	}
	c.name, c.stream = cmp.Or(path, "/"), stream
	if !slices.Contains(strings.Split(r.methods, ", "), c.r.Method) {
		allowed := r.methods + ", OPTIONS"
		c.w.Header().Set("Allow", allowed)
		if c.r.Method == http.MethodOptions {
			c.w.WriteHeader(http.StatusNoContent)
			return nil
		}
		return &httpError{http.StatusMethodNotAllowed, "this call takes " + allowed}
	}
	c.values = greader.ParseValues(c.r.URL.RawQuery)
	if !r.open {
		if err := c.authenticate(); err != nil {
			return err
		}
		var err error
		if c.lib, err = c.library(c.user.Dir); err != nil {
			return err
		}
	}
	if err := r.do(c); err != nil || !r.ok {
		return err
	}
	return c.text("OK") // newsboat compares the whole answer
}
