// Package page is the page of lektor-serve for a browser: lists, entries, feeds and a search, in HTML.
//
// It is a viewer. It answers from the lektor-dir of the user, as package server does for clients, and keeps nothing
// itself. Every change is a POST request; the answer leads back, with a message and a button that takes the change
// back. The script only saves loading pages: all works without it.
package page

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"html/template"
	"io"
	"math"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/app/server"
	"github.com/lektordir/lektor/internal/app/server/accounts"
	"github.com/lektordir/lektor/internal/content"
	"github.com/lektordir/lektor/internal/http/httpserver"
	"github.com/lektordir/lektor/internal/http/passwords"
)

// Options are the options of [New].
type Options struct {
	Images string // "never", "ask" or "always" load images from elsewhere
	// KeepUnread does not mark an entry as read when it is shown.
	KeepUnread bool
}

// Page is the page of a server.
type Page struct {
	o       Options
	server  *server.Server
	base    string // path, with a slash at both ends
	guard   *http.CrossOriginProtection
	results results
}

// New returns a function that makes the page of a server.
func New(o Options) func(*server.Server) server.Page {
	return func(s *server.Server) server.Page {
		base := "/"
		if inner := strings.Trim(s.Options().BasePath, "/"); inner != "" {
			base = "/" + inner + "/"
		}
		return (&Page{o: o, server: s, base: base, guard: http.NewCrossOriginProtection()}).Answer
	}
}

// visit is a request of a browser, and its answer.
type visit struct {
	*Page
	w    http.ResponseWriter
	r    *http.Request
	v    *server.View // nil if nobody is logged in
	form url.Values   // of the query, or of the body
}

// route is a page by its path.
type route struct {
	get, post func(*visit) error
	open      bool // needs no login
}

var routes = sync.OnceValue(func() map[string]route {
	return map[string]route{
		"unread": {get: (*visit).list}, "all": {get: (*visit).list}, "starred": {get: (*visit).list},
		"search": {get: (*visit).list}, "entry": {get: (*visit).entry}, "site": {get: (*visit).site},
		"new": {get: (*visit).newer}, "feeds": {get: (*visit).feeds}, "add": {get: (*visit).added, post: (*visit).add},
		"mark": {post: (*visit).mark}, "undo": {post: (*visit).undo}, "refresh": {post: (*visit).refresh},
		"help": {get: (*visit).help}, "login": {get: (*visit).loginForm, post: (*visit).login, open: true},
		"logout": {post: (*visit).logout},
	}
})

// Answer is a [server.Page].
func (p *Page) Answer(w http.ResponseWriter, r *http.Request, name string) bool {
	c := &visit{Page: p, w: w, r: r}
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if name == "" {
		if reads && httpserver.Accepts(r.Header.Get("Accept"), "text/html") {
			c.leave("unread")
			return true
		}
		return false
	}
	if f, ok := static()[name]; ok && reads {
		c.file(f)
		return true
	}
	route, ok := routes()[name]
	if !ok {
		return false
	}
	do := route.get
	if !reads {
		do = route.post
	}
	c.head()
	switch {
	case do == nil || !reads && r.Method != http.MethodPost:
		c.fail(http.StatusMethodNotAllowed, "This page does not take such a request.")
	case !reads && p.guard.Check(r) != nil:
		c.fail(http.StatusForbidden, "The request came from another site, so nothing was changed.")
	case r.URL.Path != p.base+name && reads: // links are relative
		c.leave(name + "?" + r.URL.RawQuery)
	default:
		if err := c.do(route, do); err != nil {
			c.failed(err)
		}
	}
	return true
}

// maxForm is the maximum size of a form in bytes.
const maxForm = 1 << 20

// do logs in by the cookie, and calls the function of a page.
func (c *visit) do(route route, do func(*visit) error) error {
	c.form = c.r.URL.Query()
	if !route.open {
		cookie, err := c.r.Cookie(cookieName)
		if err == nil {
			c.v, err = c.server.Open(c.w, c.r, cookie.Value)
		}
		if errors.Is(err, http.ErrNoCookie) || errors.Is(err, accounts.ErrDenied) {
			c.ask()
			return nil
		}
		if err != nil {
			return err
		}
	}
	if c.r.Method == http.MethodPost {
		c.r.Body = http.MaxBytesReader(c.w, c.r.Body, maxForm)
		if err := c.r.ParseForm(); err != nil {
			c.fail(http.StatusBadRequest, "The form is malformed, incomplete or too large.")
			return nil
		}
		c.form = c.r.PostForm
	}
	return do(c)
}

// failed answers with an error.
func (c *visit) failed(err error) {
	if c.r.Context().Err() != nil {
		return
	}
	status, message := server.Refusal(err)
	if status >= http.StatusInternalServerError {
		c.server.Warn(err)
	}
	c.fail(status, message)
}

// fail answers with a message.
func (c *visit) fail(status int, message string) {
	_ = c.show(status, "error", frame{Title: "This did not work", Main: message})
}

// head sets the header fields of a page. Content that has passed the sanitiser still runs no scripts, and cannot
// send forms elsewhere.
func (c *visit) head() {
	h := c.w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "same-origin") // a form must have its origin
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	c.policy(c.o.Images == "always")
}

// policy sets the policy for what a page loads and runs.
func (c *visit) policy(images bool) {
	from := "'self' data:"
	if images {
		from += " http: https:"
	}
	c.w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; "+
		"connect-src 'self'; manifest-src 'self'; media-src http: https:; form-action 'self'; base-uri 'none'; "+
		"frame-ancestors 'none'; img-src "+from)
}

// frame is the data of a page.
type frame struct {
	Title  string
	Page   string // the name of its template
	In     string // the list of which it is, for the navigation
	Unread int    // of all feeds
	User   bool   // somebody is logged in
	Said   *said
	Main   any

	Style, Script, Manifest string // names of files
}

// show answers with a page.
func (c *visit) show(status int, name string, f frame) error {
	f.Page, f.Style, f.Script = name, static()["style.css"].url(), static()["page.js"].url()
	f.Manifest = static()["app.webmanifest"].url()
	if f.User = c.v != nil; f.User {
		f.Unread = c.unreadOfAll()
		if c.r.Method != http.MethodPost {
			f.Said = c.takeSaid()
		}
	}
	var b bytes.Buffer
	if err := templates().ExecuteTemplate(&b, "page", f); err != nil {
		return err
	}
	c.send(status, "text/html; charset=utf-8", b.Bytes())
	return nil
}

// unreadOfAll returns the number of unread entries of all feeds, as it was when the request came.
func (c *visit) unreadOfAll() (n int) {
	for _, f := range c.v.Feeds {
		n += f.Unread
	}
	return n
}

// send answers with a text, compressed if the browser takes it.
func (c *visit) send(status int, kind string, text []byte) {
	h := c.w.Header()
	h.Set("Content-Type", kind)
	h.Set("Vary", "Accept-Encoding, Cookie")
	if len(text) > 500 && httpserver.Accepts(c.r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		var b bytes.Buffer
		_ = httpserver.Zip(&b, func(w io.Writer) error { _, err := w.Write(text); return err }) // a buffer takes all
		text = b.Bytes()
	}
	h.Set("Content-Length", strconv.Itoa(len(text)))
	c.w.WriteHeader(status)
	_, _ = c.w.Write(text) // fails if the connection is gone
}

// leave leads the browser to a page, by a GET request.
func (c *visit) leave(to string) {
	c.w.Header().Set("Location", c.base+to)
	c.w.WriteHeader(http.StatusSeeOther)
}

// local returns the path and query of a page of this site, or that of the list of unread entries for any other text.
func local(to string) string {
	u, err := url.Parse(to)
	pages := []string{"unread", "all", "starred", "search", "entry", "feeds", "add", "help"}
	if err != nil || u.IsAbs() || u.Host != "" || !slices.Contains(pages, u.Path) {
		return "unread"
	}
	return u.String()
}

// The files of the page.
//
//go:embed page.html
var text string

//go:embed page.css page.js icon.svg icon.png app.webmanifest
var files embed.FS

var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Parse(text))
})

// file is a file that pages load.
type file struct {
	name, kind, tag string
	text            []byte
}

// url returns the URL of a file, which changes with its text.
func (f file) url() string { return f.name + "?" + f.tag }

var static = sync.OnceValue(func() map[string]file {
	all := map[string]file{}
	for _, name := range []string{"page.css", "page.js", "icon.svg", "icon.png", "app.webmanifest"} {
		text, _ := files.ReadFile(name)
		f := file{name: name, text: text, kind: map[string]string{".css": "text/css; charset=utf-8",
			".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png",
			".webmanifest": "application/manifest+json"}[path.Ext(name)]}
		if name == "page.css" {
			f.name, f.text = "style.css", append([]byte(content.StyleSheet), text...)
		}
		sum := sha256.Sum256(f.text)
		f.tag = hex.EncodeToString(sum[:6])
		all[f.name] = f
	}
	return all
})

// file answers with a file.
func (c *visit) file(f file) {
	h := c.w.Header()
	h.Set("ETag", `W/"`+f.tag+`"`)
	h.Set("Cache-Control", "public, no-cache")
	if c.r.URL.RawQuery == f.tag {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if strings.Contains(c.r.Header.Get("If-None-Match"), f.tag) {
		c.w.WriteHeader(http.StatusNotModified)
		return
	}
	c.send(http.StatusOK, f.kind, f.text)
}

// cookieName is the name of the cookie with the token.
const cookieName = "lektor"

// lasts is how long a browser that is not used stays logged in.
const lasts = 180 * 24 * time.Hour

// setCookie sets a cookie for some time; a negative one removes it.
func (c *visit) setCookie(name, value string, age time.Duration) {
	http.SetCookie(c.w, &http.Cookie{Name: name, Value: value, Path: c.base, MaxAge: int(age.Seconds()), HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: httpserver.Secure(c.r, c.server.Options().TrustedProxies)})
}

// renew lets the login last from now on.
func (c *visit) renew() {
	if cookie, err := c.r.Cookie(cookieName); err == nil {
		c.setCookie(cookieName, cookie.Value, lasts)
	}
}

// ask leads to the login, and from there back.
func (c *visit) ask() {
	if c.r.Method == http.MethodPost {
		if c.wantsMessage() {
			c.fail(http.StatusUnauthorized, "You are not logged in.")
			return
		}
		c.leave("login")
		return
	}
	to := strings.TrimPrefix(c.r.URL.RequestURI(), c.base)
	if to == "unread" {
		c.leave("login")
		return
	}
	c.leave("login?next=" + url.QueryEscape(to))
}

// loginData is the data of the login.
type loginData struct{ Name, Next, Error string }

func (c *visit) loginForm() error {
	return c.show(http.StatusOK, "login", frame{Title: "Log in", Main: loginData{Next: c.form.Get("next")}})
}

// login checks a password, and sets the cookie.
func (c *visit) login() error {
	d := loginData{Name: c.form.Get("name"), Next: c.form.Get("next")}
	token, _, err := c.server.Accounts().Login(c.r.Context(), d.Name, c.form.Get("password"), c.r.UserAgent(),
		httpserver.Peer(c.r, c.server.Options().TrustedProxies))
	status := http.StatusForbidden
	if limited, ok := errors.AsType[*passwords.LimitedError](err); ok {
		seconds := strconv.Itoa(int(math.Ceil(limited.Wait.Seconds())))
		c.w.Header().Set("Retry-After", seconds)
		status, d.Error = http.StatusTooManyRequests, "Too many attempts. Wait "+seconds+" s, and try again."
	} else if errors.Is(err, accounts.ErrDenied) {
		d.Error = "The name or the password is wrong."
	} else if err != nil {
		return err
	}
	if d.Error != "" {
		return c.show(status, "login", frame{Title: "Log in", Main: d})
	}
	c.setCookie(cookieName, token, lasts)
	c.leave(local(cmp.Or(d.Next, "unread")))
	return nil
}

// logout revokes the token of the cookie.
func (c *visit) logout() error {
	cookie, err := c.r.Cookie(cookieName)
	if err == nil {
		err = c.server.Accounts().Logout(c.r.Context(), cookie.Value)
	}
	if err != nil {
		return err
	}
	c.setCookie(cookieName, "", -time.Second)
	c.leave("login")
	return nil
}

func (c *visit) help() error { return c.show(http.StatusOK, "help", frame{Title: "Keys"}) }
