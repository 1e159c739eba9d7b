package sharer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/units"
)

// transport is a place that holds the documents of an endpoint. What is known of them from
// the last time is in a record, and brought up to date there.
type transport interface {
	// read returns a document, nil if it is the known one.
	read(ctx context.Context, name string, rec record) ([]byte, error)
	// has reports whether a version of a document is what was written last, and is there.
	has(name, version string, rec record) bool
	// write puts a version of a document there, unless it is there; check looks at another
	// document that stands in its place.
	write(ctx context.Context, name, version string, doc func(io.Writer) error, rec record, check func(data []byte) error) error
}

// placeAt returns the transport for a directory or a URL.
func (r *run) placeAt(place string) transport {
	if isURL(place) {
		return &server{r: r, url: strings.TrimSuffix(place, "/")}
	}
	return directory{path: place, step: r.c.step}
}

// directory is a place on this machine, or one that is mounted or replicated.
type directory struct {
	path string
	step func()
}

func (p directory) read(_ context.Context, name string, rec record) ([]byte, error) {
	path := filepath.Join(p.path, name)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, errMissing
	} else if err != nil {
		return nil, err
	}
	is := identity(path)
	if rec.Get(name) == is {
		return nil, nil
	}
	data, err := atomicfile.Read(path, maxDocument)
	rec.Set(name, is)
	return data, err
}

func (p directory) has(name, version string, rec record) bool {
	path := filepath.Join(p.path, name)
	was, is, _ := strings.Cut(rec.Get(name), ", ")
	return was == version && is == identity(path) && atomicfile.Exists(path)
}

func (p directory) write(_ context.Context, name, version string, doc func(io.Writer) error, rec record, _ func([]byte) error) error {
	// Before there is a document there is no directory, and nobody looks into it.
	if fi, err := os.Lstat(p.path); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
		return command.Hint(fmt.Errorf("%s is a symbolic link; nothing is written through it", p.path), "another machine may have made it; remove it")
	}
	p.step()
	if err := makeDir(p.path); err != nil {
		return err
	}
	path := filepath.Join(p.path, name)
	if err := writeFile(path, doc); err != nil {
		return err
	}
	rec.Set(name, version+", "+identity(path))
	return nil
}

// writeFile replaces a file by a document.
func writeFile(path string, doc func(io.Writer) error) error {
	err := atomicfile.WritePrivateFrom(path, doc)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		// A stick, or a server that is mounted, may know no permissions.
		var data bytes.Buffer
		if err = doc(&data); err == nil {
			err = atomicfile.Write(path, data.Bytes())
		}
	}
	return err
}

// sweepDir removes the temporary files that kills have left in a directory.
func sweepDir(dir string, step func()) {
	if fi, err := os.Lstat(dir); err != nil || !fi.IsDir() {
		return
	}
	found, _ := os.ReadDir(dir)
	for _, f := range found {
		if atomicfile.Temporary(f.Name()) {
			step()
			_ = os.Remove(filepath.Join(dir, f.Name())) // the next run tries again
		}
	}
}

// makeDir makes a directory that is to be written to.
func makeDir(dir string) error {
	err := os.MkdirAll(dir, 0o777)
	if errors.Is(err, syscall.ENOTDIR) {
		return command.Hint(err, "it has to be a directory: move what is in its place, or choose another")
	}
	return err
}

// identity is what changes when a file does.
func identity(path string) string {
	fi, err := os.Stat(path)
	if err != nil {
		return "none"
	}
	// Whoever replaces a file by another makes an inode.
	is := fmt.Sprintf("%d %d", fi.Size(), fi.ModTime().UnixNano())
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		is += fmt.Sprintf(" %d", st.Ino)
	}
	return is
}

// server is a place on a web server that takes PUT.
type server struct {
	r   *run
	url string
	// made reports that the directory was asked for.
	made bool
}

func (p *server) read(ctx context.Context, name string, rec record) ([]byte, error) {
	req := &fetch.Request{URL: p.url + "/" + name, ETag: rec.Get(name + ".etag"), LastModified: rec.Get(name + ".modified")}
	if p.r.isTarget(p.url) {
		header, err := p.r.headers()
		if err != nil {
			return nil, err
		}
		req.Header = header
	}
	resp, err := p.r.client().Get(ctx, req)
	var status *fetch.StatusError
	switch {
	case errors.As(err, &status) && (status.Status == http.StatusNotFound || status.Status == http.StatusGone):
		return nil, errMissing
	case status != nil:
		return nil, p.askedInVain(status)
	case err != nil:
		return nil, err
	case resp.NotModified:
		return nil, nil
	case resp.Truncated:
		return nil, errors.New("it was cut off on the way")
	}
	rec.validators(name, resp.ETag, resp.LastModified)
	return resp.Body, nil
}

func (p *server) has(name, version string, rec record) bool {
	return rec.Get(name) == p.digest(name, version)
}

// digest is that of a version of a document in this place.
func (p *server) digest(name, version string) string {
	return digest([]byte(p.url + "/" + name + "\n" + version))
}

// askedInVain says of an answer without a document what is to be done.
func (p *server) askedInVain(e *fetch.StatusError) error {
	if e.Status != http.StatusUnauthorized && e.Status != http.StatusForbidden {
		return e
	}
	err := &fetch.StatusError{URL: e.URL, Status: e.Status, Detail: "this machine may not read there"}
	if !p.r.isTarget(p.url) {
		return command.Hint(err, "the headers of %s are for the server of the target alone; this one has to let everybody read, by an address that nobody guesses", p.r.path(headersFile))
	}
	return command.Hint(err, "%s", p.r.password())
}

// password says where that for the target's server goes.
func (r *run) password() string {
	return fmt.Sprintf("put the header that the server wants, as Authorization, into %s; or say user and password in the URL of lektor-share init", r.path(headersFile))
}

// isTarget reports whether the headers for the target are for a URL, too.
func (r *run) isTarget(place string) bool {
	return isURL(r.target) && fetch.SameOrigin(r.target, place)
}

// headers are those of requests to the target.
func (r *run) headers() (http.Header, error) {
	text, err := atomicfile.Read(r.path(headersFile), atomicfile.MaxLine)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if fi, err := os.Stat(r.path(headersFile)); err == nil && fi.Mode().Perm()&0o077 != 0 {
		return nil, command.Hint(fmt.Errorf("%s can be read by others", r.path(headersFile)), "chmod 600 %s", r.path(headersFile))
	}
	header, err := fetch.ParseHeaders(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.path(headersFile), err)
	}
	return header, nil
}

// write puts a document on the server, in the place of the one that is known to be there:
// if there is another, check looks at it before it is overwritten. Many servers know
// nothing of such conditions, and some refuse them; that is why [exchange.overwritten]
// looks beforehand.
func (p *server) write(ctx context.Context, name, version string, doc func(io.Writer) error, rec record, check func([]byte) error) error {
	var data bytes.Buffer
	if err := doc(&data); err != nil {
		return err
	}
	post := &fetch.Post{URL: p.url + "/" + name, Method: http.MethodPut, ContentType: "application/rss+xml", Body: data.Bytes(), Chosen: true, Secret: true}
	if name == subsFile {
		post.ContentType = "text/x-opml"
	}
	header, err := p.r.headers()
	if err != nil {
		return err
	}
	p.makeDirectory(ctx, header)
	condition := http.Header{}
	if tag := rec.Get(name + ".etag"); strings.HasPrefix(tag, `"`) { // a weak one matches nothing
		condition.Set("If-Match", tag)
	} else if rec.Get(name) == "" {
		condition.Set("If-None-Match", "*")
	}
	for {
		post.Header = http.Header{}
		maps.Copy(post.Header, header)
		maps.Copy(post.Header, condition)
		a, err := p.r.client().Post(ctx, post)
		switch {
		case err != nil:
			return err
		case a.Success() && !isPage(a.Status, a.Body):
			p.validators(ctx, post, a, name, rec)
			rec.Set(name, p.digest(name, version))
			return nil
		case len(condition) > 0 && a.Status == http.StatusPreconditionFailed:
			rec.validators(name, "", "")
			other, err := p.read(ctx, name, rec)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err == nil && other != nil {
				if err := check(other); err != nil {
					return err
				}
			}
			clear(condition)
		case len(condition) > 0 && (a.Status == http.StatusNotImplemented || a.Status == http.StatusBadRequest):
			clear(condition)
		default:
			return p.refused(a, data.Len())
		}
	}
}

// validators notes by what the server knows the document that it has taken: what it says
// of it by itself, or else when it is asked.
func (p *server) validators(ctx context.Context, post *fetch.Post, a *fetch.Answer, name string, rec record) {
	tags := func(a *fetch.Answer) bool {
		etag, modified := fetch.Validators(a.Header)
		rec.validators(name, etag, modified)
		return etag != ""
	}
	if tags(a) {
		return
	}
	head := &fetch.Post{URL: post.URL, Method: http.MethodHead, Header: post.Header.Clone(), Chosen: true, Secret: true}
	for _, name := range []string{"If-Match", "If-None-Match"} {
		head.Header.Del(name)
	}
	if a, err := p.r.client().Post(ctx, head); err == nil && a.Status == http.StatusOK {
		tags(a)
	}
}

// makeDirectory makes the directory of this endpoint on a server that knows WebDAV
// (RFC 4918, section 9.3), and that of all, if it is missing: once in a run, before the
// first document. Servers answer in many ways to a PUT where there is none, one of them
// with 500; and to this, if they have the directory or do not know what it means. PUT
// reports whether it is there.
func (p *server) makeDirectory(ctx context.Context, header http.Header) {
	if p.made {
		return
	}
	p.made = true
	mkcol := func(place string) int {
		// Some know a directory by the slash alone.
		a, err := p.r.client().Post(ctx, &fetch.Post{URL: strings.TrimSuffix(place, "/") + "/", Method: "MKCOL", Header: header, Chosen: true, Secret: true, Direct: true})
		if err != nil {
			return 0
		}
		return a.Status
	}
	if mkcol(p.url) == http.StatusConflict && mkcol(p.r.target) == http.StatusCreated {
		mkcol(p.url)
	}
}

// isPage reports whether a server that says that all is well gives a web page, as those do
// that want a login first: of a document that was put there it took nothing then. (A
// status of 201 may have a page that says so.)
func isPage(status int, body []byte) bool {
	head := bytes.ToLower(body[:min(len(body), 1024)])
	return status == http.StatusOK && (bytes.Contains(head, []byte("<html")) || bytes.Contains(head, []byte("<!doctype html")))
}

// aPage is the error for one.
const aPage = "it is a web page, perhaps one to log in"

// refused is the error of an answer by which the server has not taken a document: what
// is wrong, and what is to be done. Nothing is lost by it: what is to be put there stays
// in the set.
func (p *server) refused(a *fetch.Answer, size int) error {
	detail, hint := "", ""
	switch a.Status {
	case http.StatusOK:
		detail, hint = aPage+", and nothing was taken", p.r.password()
	case http.StatusUnauthorized:
		detail, hint = "it wants to know who we are", p.r.password()
	case http.StatusForbidden:
		detail, hint = "this machine may not write there", "look at the permissions of that directory; or "+p.r.password()
	case http.StatusConflict, http.StatusNotFound, http.StatusGone:
		detail, hint = "there is no directory for it", fmt.Sprintf("make the directory %s/ on the server; or, if the address is wrong: lektor-share init URL", fetch.Public(p.url))
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
