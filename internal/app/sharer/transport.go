package sharer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
)

// transport is a place that holds the documents of an endpoint. A record of their last
// known state is passed to each method, which updates it.
type transport interface {
	// read returns a document; nil if it has not changed since the record.
	read(ctx context.Context, name string, rec record) ([]byte, error)
	// has reports whether the recorded version of a document is this one, and is still
	// there.
	has(name, version string, rec record) bool
	// write writes a version of a document.
	write(ctx context.Context, name, version string, doc func(io.Writer) error, rec record) error
	// clear removes the documents, those first that link to others.
	clear(ctx context.Context) error
}

// directory is a place in a file system, perhaps mounted or replicated.
type directory struct {
	path string
	step func()
}

func (p directory) read(_ context.Context, name string, rec record) ([]byte, error) {
	path := filepath.Join(p.path, name)
	for _, path := range []string{p.path, path} {
		// The peer could publish documents of another circle through us by a link to them.
		if isLink(path) {
			return nil, cmdline.Hint(fmt.Errorf("%s is a symbolic link, and is not followed", path),
				"if you made the link: lektor-share peer add NAME DIR")
		}
	}
	current := identity(path)
	if rec.Get(name+".etag") == current {
		return nil, nil
	}
	data, err := atomicfile.ReadIn(p.path, name, maxDocument)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errMissing
	}
	if bad, ok := errors.AsType[*fs.PathError](err); ok && bad.Path == name {
		bad.Path = path
	}
	rec.validators(name, current, "")
	return data, err
}

func (p directory) has(name, version string, rec record) bool {
	return rec.Get(name) == version && rec.Get(name+".etag") == identity(filepath.Join(p.path, name))
}

func (p directory) write(_ context.Context, name, version string, doc func(io.Writer) error, rec record) error {
	// Another machine that shares the target may have put a link there.
	if isLink(p.path) {
		return cmdline.Hint(fmt.Errorf("%s is a symbolic link; nothing is written through it", p.path),
			"another machine may have made it; remove it")
	}
	p.step()
	if err := makeDir(p.path); err != nil {
		return err
	}
	path := filepath.Join(p.path, name)
	if err := writeFile(path, doc); err != nil {
		return err
	}
	rec.Set(name, version)
	rec.validators(name, identity(path), "")
	return nil
}

func (p directory) clear(context.Context) error {
	if err := isThere(filepath.Dir(p.path)); err != nil {
		return err
	}
	// Another machine may have put a link there, to documents of others.
	if isLink(p.path) {
		return nil
	}
	for _, name := range slices.Backward(documents) {
		p.step()
		if err := atomicfile.Remove(filepath.Join(p.path, name)); err != nil {
			return err
		}
	}
	sweepDir(p.path, p.step)
	_ = syscall.Rmdir(p.path) // it stays if it is not empty
	return nil
}

func isLink(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && fi.Mode()&fs.ModeSymlink != 0
}

// writeFile replaces a file by a document.
func writeFile(path string, doc func(io.Writer) error) error {
	err := atomicfile.WritePrivateFrom(path, doc)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		// A USB stick or a mounted server may not support permissions.
		var data bytes.Buffer
		if err = doc(&data); err == nil {
			err = atomicfile.Write(path, data.Bytes())
		}
	}
	return err
}

// makeDir creates a directory.
func makeDir(dir string) error {
	err := os.MkdirAll(dir, 0o777)
	if errors.Is(err, syscall.ENOTDIR) {
		return cmdline.Hint(err, "a directory is needed here: move the file away, or choose another place")
	}
	return err
}

// identity returns a text that changes with the file: size, modification time and inode.
func identity(path string) string {
	var st unix.Stat_t
	if atomicfile.Again(func() error { return unix.Stat(path, &st) }) != nil {
		return "none"
	}
	// An atomic replacement has a new inode, even with the same size and time.
	return fmt.Sprintf("%d %d %d", st.Size, unix.TimespecToNsec(st.Mtim), st.Ino)
}

// server is a place on a web server that supports PUT.
type server struct {
	e            *endpoint
	url          string
	dirRequested bool // makeDirectory was called
}

func (p *server) read(ctx context.Context, name string, rec record) ([]byte, error) {
	req := &httpmsg.Request{URL: p.url + "/" + name, ETag: rec.Get(name + ".etag"),
		LastModified: rec.Get(name + ".modified")}
	if p.e.isTarget(p.url) {
		header, err := p.e.headers()
		if err != nil {
			return nil, err
		}
		req.Header = textproto.MIMEHeader(header)
	}
	resp, err := p.e.web.Get(ctx, req)
	var status *httpmsg.StatusError
	switch {
	case errors.As(err, &status) && (status.Status == http.StatusNotFound || status.Status == http.StatusGone):
		return nil, errMissing
	case status != nil:
		return nil, p.deniedError(status)
	case err != nil:
		return nil, err
	case resp.NotModified:
		return nil, nil
	case resp.Truncated:
		return nil, errCutOff
	}
	rec.validators(name, resp.ETag, resp.LastModified)
	return resp.Body, nil
}

func (p *server) has(name, version string, rec record) bool {
	return rec.Get(name) == version
}

// deniedError returns the error for an error status, with a hint if access was denied.
func (p *server) deniedError(e *httpmsg.StatusError) error {
	if e.Status != http.StatusUnauthorized && e.Status != http.StatusForbidden {
		return e
	}
	err := &httpmsg.StatusError{URL: e.URL, Status: e.Status, Text: e.Text, Detail: "this machine may not read there"}
	if !p.e.isTarget(p.url) {
		return cmdline.Hint(err,
			"the headers of %s are sent only to the target's server; this server must allow reading without a password, at a secret URL", p.e.path(headersFile))
	}
	return cmdline.Hint(err, "%s", p.e.password())
}

// write puts a document on the server. The PUT is unconditional, since many servers ignore conditions, and
// some refuse them: [exchange.overwritten] has checked beforehand what is there.
func (p *server) write(ctx context.Context, name, version string, doc func(io.Writer) error, rec record) error {
	var data bytes.Buffer
	if err := doc(&data); err != nil {
		return err
	}
	kind := "application/rss+xml"
	if name == subsFile {
		kind = "text/x-opml"
	}
	p.makeDirectory(ctx)
	a, err := p.send(ctx, http.MethodPut, p.url+"/"+name, func(post *fetch.Post) {
		post.ContentType, post.Body = kind, data.Bytes()
	})
	if err != nil {
		return err
	}
	if !a.Success() || isPage(a.Status, a.Body) {
		return p.refused(a, data.Len())
	}
	p.validators(ctx, a, name, rec)
	rec.Set(name, version)
	return nil
}

// send makes a request with the headers of the target. It first calls change, unless that is nil.
func (p *server) send(ctx context.Context, method, url string, change func(*fetch.Post)) (*fetch.Answer, error) {
	header, err := p.e.headers()
	if err != nil {
		return nil, err
	}
	post := &fetch.Post{URL: url, Method: method, Header: header, Chosen: true, Secret: true}
	if change != nil {
		change(post)
	}
	return p.e.web.Post(ctx, post)
}

func (p *server) clear(ctx context.Context) error {
	for _, name := range slices.Backward(documents) {
		a, err := p.send(ctx, http.MethodDelete, p.url+"/"+name, nil)
		if err == nil && (!a.Success() && a.Status != http.StatusNotFound && a.Status != http.StatusGone ||
			isPage(a.Status, a.Body)) {
			err = cmdline.Hint(a.Error("the document was not removed"),
				"without --leave the target changes, and the documents stay")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// validators records the validators of a document after PUT: those in the answer, or those
// of a second request.
func (p *server) validators(ctx context.Context, a *fetch.Answer, name string, rec record) {
	etag, modified := httpmsg.Validators(textproto.MIMEHeader(a.Header))
	if etag == "" {
		a, err := p.send(ctx, http.MethodHead, p.url+"/"+name, nil)
		if err == nil && a.Status == http.StatusOK {
			etag, modified = httpmsg.Validators(textproto.MIMEHeader(a.Header))
		}
	}
	rec.validators(name, etag, modified)
}

// makeDirectory creates the directory of this endpoint on a WebDAV server (RFC 4918,
// section 9.3), and its parent if that is missing: once in a run, before the first
// document. Servers differ in their answers to MKCOL and to a PUT without a directory (one
// sends 500), so the answer is ignored. The PUT that follows reports whether the directory
// exists.
func (p *server) makeDirectory(ctx context.Context) {
	if p.dirRequested {
		return
	}
	p.dirRequested = true
	mkcol := func(place string) int {
		// Some servers recognise a directory only by the slash.
		a, err := p.send(ctx, "MKCOL", strings.TrimSuffix(place, "/")+"/",
			func(post *fetch.Post) { post.Direct = true })
		if err != nil {
			return 0
		}
		return a.Status
	}
	if mkcol(p.url) == http.StatusConflict && mkcol(p.e.target) == http.StatusCreated {
		mkcol(p.url)
	}
}

// isPage reports whether an answer with status 200 is a web page, for example a login form.
// Then the server has not stored the document. With status 201 a page is normal.
func isPage(status int, body []byte) bool {
	head := bytes.ToLower(body[:min(len(body), 1024)])
	return status == http.StatusOK && (bytes.Contains(head, []byte("<html")) ||
		bytes.Contains(head, []byte("<!doctype html")))
}

// aPage is the error text for such an answer.
const aPage = "it is a web page, perhaps one to log in"

// refused returns the error for an answer to a PUT that was not successful, with a hint.
// The edits stay in the set.
func (p *server) refused(a *fetch.Answer, size int) error {
	missing := [2]string{"there is no directory for it", fmt.Sprintf(
		"make the directory %s/ on the server; or, if the address is wrong: lektor-share init URL", feedurl.Public(p.url))}
	unable := [2]string{"the server does not accept documents there (PUT)",
		"use the address of a WebDAV directory: lektor-share init URL"}
	text := map[int][2]string{
		http.StatusOK:           {aPage + ", and nothing was stored", p.e.password()},
		http.StatusUnauthorized: {"the server requires a user and password", p.e.password()},
		http.StatusForbidden: {"this machine may not write there",
			"look at the permissions of that directory; or " + p.e.password()},
		http.StatusConflict: missing, http.StatusNotFound: missing, http.StatusGone: missing,
		http.StatusMethodNotAllowed: unable, http.StatusNotImplemented: unable,
		http.StatusRequestEntityTooLarge: {"the server does not accept " + humanize.Bytes(int64(size)),
			"raise its limit (nginx: client_max_body_size, Apache: LimitRequestBody)"},
		http.StatusLocked: {"the document is locked there; the next sync tries again"},
		http.StatusInsufficientStorage: {"the server has no space left; the next sync tries again",
			"free space on the server"},
	}[a.Status]
	err := a.Error(text[0])
	if text[1] == "" {
		return err
	}
	return cmdline.Hint(err, "%s", text[1])
}
