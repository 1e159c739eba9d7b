package sharer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"strings"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/feedsync"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/units"
)

// onServer is what is known of the documents on the server: by the name of a document
// the digest of what was put there, and the validators that the server had for it. What
// is known of another place is of no use.
func (h *share) onServer() record {
	r := h.record("../" + publishedFile)
	if place := digest([]byte(h.place())); r["place"] != place {
		r = record{"place": place}
	}
	return r
}

// sumOf is the digest of a document in a place.
func (h *share) sumOf(name string, data []byte) string {
	return digest(append([]byte(h.place()+"/"+name+"\n"), data...))
}

// overwrittenThere is [share.overwritten] for a server. It asks only when something is
// going to be put there, and by the validators that are known: nearly always nothing
// comes back. Of the states it is the partial document, as that is written by all who
// change them.
func (h *share) overwrittenThere(ctx context.Context) error {
	r := h.onServer()
	if h.tooSoon(h.target, r) != nil {
		return nil
	}
	for _, c := range []struct {
		name    string
		changed bool
	}{{subsFile, h.changed.subs}, {partialFile, h.changed.states}} {
		if c.changed {
			if err := h.another(ctx, c.name, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// another is the error for a document on the server that another machine put there,
// which takes itself for this endpoint. What cannot be had is none: to put one there may
// work all the same, and if not, that is told.
func (h *share) another(ctx context.Context, name string, r record) error {
	data, err := h.get(ctx, peer{name: h.me, place: h.place()}, name, r)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil || data == nil {
		return nil
	}
	h.needs(int(parsedWeight * float64(len(data))))
	doc, _ := feedsync.Parse(data)
	if doc == nil {
		return nil
	}
	return h.published(fetch.Public(h.place())+"/"+name, name, doc)
}

// upload puts the documents on a server. One that it does not take keeps the other set
// from nothing; but the partial document of a set names the complete one, and does not
// come without it.
func (h *share) upload(ctx context.Context) error {
	r := h.onServer()
	var bad error
	for _, name := range documents {
		data, err := atomicfile.Read(h.path(name), maxDocument)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return errors.Join(bad, err)
		}
		sum := h.sumOf(name, data)
		if r[name] == sum {
			continue
		}
		if err := h.tooSoon(h.target, r); err != nil {
			return errors.Join(bad, err)
		}
		err = h.send(ctx, name, data, r)
		if err == nil {
			r[name] = sum
			delete(r, "after")
		} else if wait := leftAlone(err); wait > 0 {
			r["after"] = feedsync.FormatDate(h.now.Add(wait))
		}
		if err := errors.Join(err, h.writeRecord("../"+publishedFile, r)); err == nil {
			continue
		}
		bad = errors.Join(bad, err)
		if name != subsFile || !ofOne(err) {
			return bad
		}
	}
	return bad
}

// ofOne tells whether an error is of one document, and may be none of the next.
func ofOne(err error) bool {
	e, ok := errors.AsType[*fetch.StatusError](err)
	switch {
	case !ok:
		return false
	case e.Status == http.StatusRequestEntityTooLarge, e.Status == http.StatusLocked, e.Status == http.StatusInsufficientStorage:
		return true
	}
	return false
}

// lasting tells whether an error of publishing stays one until somebody does something
// about it here.
func lasting(err error) bool {
	if errors.As(err, new(*CopiedError)) || !fetch.Remote(err) && !errors.As(err, new(*laterError)) {
		return true
	}
	e, ok := errors.AsType[*fetch.StatusError](err)
	switch {
	case !ok:
		return false
	case e.Status == http.StatusRequestTimeout, e.Status == http.StatusLocked, e.Status == http.StatusTooEarly, e.Status == http.StatusTooManyRequests:
		return false
	}
	return e.Status/100 == 4
}

// send puts a document on the server, in the place of the one that is known to be there:
// if there is another, it is looked at before it is overwritten. Many servers know
// nothing of such conditions, and some refuse them; that is why overwrittenThere looks
// beforehand.
func (h *share) send(ctx context.Context, name string, data []byte, r record) error {
	p := &fetch.Post{URL: h.place() + "/" + name, Method: http.MethodPut, ContentType: "application/rss+xml", Body: data, Chosen: true, Secret: true}
	if name == subsFile {
		p.ContentType = "text/x-opml"
	}
	header, err := h.headers()
	if err != nil {
		return err
	}
	condition := http.Header{}
	if tag := r[name+".etag"]; strings.HasPrefix(tag, `"`) { // a weak one matches nothing
		condition.Set("If-Match", tag)
	} else if r[name] == "" {
		condition.Set("If-None-Match", "*")
	}
	for made := false; ; {
		p.Header = http.Header{}
		maps.Copy(p.Header, header)
		maps.Copy(p.Header, condition)
		a, err := h.client().Post(ctx, p)
		switch {
		case err != nil:
			return err
		case a.Success() && !isPage(a.Status, a.Body):
			h.validators(ctx, p, a, name, r)
			return nil
		case len(condition) > 0 && a.Status == http.StatusPreconditionFailed:
			r.forgetValidators(name)
			if err := h.another(ctx, name, r); err != nil {
				return err
			}
			clear(condition)
		case len(condition) > 0 && (a.Status == http.StatusNotImplemented || a.Status == http.StatusBadRequest):
			clear(condition)
		case !made && (a.Status == http.StatusConflict || a.Status == http.StatusNotFound) && h.makeDirectory(ctx, header):
			made = true
		default:
			return h.refused(a, len(data))
		}
	}
}

// isPage tells whether a server that says that all is well gives a web page, as those do
// that want a login first: of a document that was put there it took nothing then. (A
// status of 201 may have a page that says so.)
func isPage(status int, body []byte) bool {
	head := bytes.ToLower(body[:min(len(body), 1024)])
	return status == http.StatusOK && (bytes.Contains(head, []byte("<html")) || bytes.Contains(head, []byte("<!doctype html")))
}

// aPage is what is told of one.
const aPage = "it is a web page, perhaps one to log in"

// validators notes by what the server knows the document that it has taken: what it says
// of it by itself, or else when it is asked.
func (h *share) validators(ctx context.Context, p *fetch.Post, a *fetch.Answer, name string, r record) {
	r.forgetValidators(name)
	tags := func(a *fetch.Answer) bool {
		r[name+".etag"], r[name+".modified"] = fetch.Validators(a.Header)
		return r[name+".etag"] != ""
	}
	if tags(a) {
		return
	}
	head := &fetch.Post{URL: p.URL, Method: http.MethodHead, Header: p.Header.Clone(), Chosen: true, Secret: true}
	for _, name := range []string{"If-Match", "If-None-Match"} {
		head.Header.Del(name)
	}
	if a, err := h.client().Post(ctx, head); err == nil && a.Status == http.StatusOK {
		tags(a)
	}
}

// makeDirectory makes the directory of this endpoint on a server that knows WebDAV
// (RFC 4918, section 9.3), and that of all, if it is missing. It reports whether it did.
func (h *share) makeDirectory(ctx context.Context, header http.Header) bool {
	mkcol := func(place string) int {
		// Some know a directory by the slash alone.
		a, err := h.client().Post(ctx, &fetch.Post{URL: strings.TrimSuffix(place, "/") + "/", Method: "MKCOL", Header: header, Chosen: true, Secret: true, Direct: true})
		if err != nil {
			return 0
		}
		return a.Status
	}
	status := mkcol(h.place())
	if status == http.StatusConflict && mkcol(h.target) == http.StatusCreated {
		status = mkcol(h.place())
	}
	return status == http.StatusCreated
}

// refused is the error of an answer by which the server has not taken a document: what
// is wrong, and what is to be done. Nothing is lost by it: what is to be put there stays
// in the set.
func (h *share) refused(a *fetch.Answer, size int) error {
	detail, hint := "", ""
	switch a.Status {
	case http.StatusOK:
		detail, hint = aPage+", and nothing was taken", h.password()
	case http.StatusUnauthorized:
		detail, hint = "it wants to know who we are", h.password()
	case http.StatusForbidden:
		detail, hint = "this machine may not write there", "look at the permissions of that directory; or "+h.password()
	case http.StatusConflict, http.StatusNotFound, http.StatusGone:
		detail, hint = "there is no directory for it", fmt.Sprintf("make the directory %s/ on the server; or, if the address is wrong: lektor-share init URL", fetch.Public(h.place()))
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		detail, hint = "it takes no documents there (PUT)", "give the address of a WebDAV directory: lektor-share init URL"
	case http.StatusRequestEntityTooLarge:
		detail, hint = "it takes none of "+units.Bytes(int64(size)), "raise the limit there: of nginx client_max_body_size, of Apache LimitRequestBody"
	case http.StatusLocked:
		detail = "somebody has locked it there; the next sync tries again"
	case http.StatusInsufficientStorage:
		detail, hint = "there is no room left; the next sync tries again", "make room on the server"
	}
	err := a.Error(detail)
	if hint == "" {
		return err
	}
	return command.Hint(err, "%s", hint)
}
