package hub

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/stamp"
	"github.com/lektordir/lektor/internal/http/passwords"
	"github.com/lektordir/lektor/internal/protocol/rsscloud"
	"github.com/lektordir/lektor/internal/text/humanize"
)

// Path of feeds that are stored here: /feeds/USER/rss.xml.
const (
	savedPath = "/feeds/"
	savedName = "rss.xml"
)

// userName matches valid user names. The name is a directory and a part of a URL.
var userName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`) })

// users are the users that may store feeds here.
type users struct {
	checker *passwords.Checker
	mu      sync.Mutex
	hashes  stamp.File[map[string]string] // by name
}

func readUsers(path string, now func() time.Time) (*users, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	u := &users{checker: passwords.New(now)}
	u.hashes = stamp.File[map[string]string]{Path: path, Max: 1 << 20, Parse: parseUsers}
	return u, u.hashes.Load()
}

// parseUsers reads lines NAME:HASH, as "htpasswd -B" writes them.
func parseUsers(path string, data []byte) (map[string]string, error) {
	hashes, n := map[string]string{}, 0
	for line := range strings.Lines(string(data)) {
		n++
		if line = strings.TrimRight(line, "\r\n"); line == "" || line[0] == '#' {
			continue
		}
		name, hash, _ := strings.Cut(line, ":")
		if !passwords.IsHash(hash) || !userName().MatchString(name) {
			return nil, fmt.Errorf("%s:%d: expected NAME:HASH with a bcrypt hash, as \"htpasswd -B\" writes it", path,
				n)
		}
		hashes[name] = hash
	}
	return hashes, nil
}

const errPassword = rsscloud.Sentence("The user or the password is wrong.")

// check returns an error if a password is wrong. After several wrong ones, the caller must
// wait, longer each time.
func (u *users) check(ctx context.Context, name, password string, caller netip.Addr) error {
	u.mu.Lock()
	err := u.hashes.Load()
	hash, known := passwords.HashOf(u.hashes.Value, name, func(hash string) string { return hash })
	u.mu.Unlock()
	if err == nil {
		err = u.checker.Check(ctx, caller, name, hash, []byte(password), known)
	}
	limited, ok := errors.AsType[*passwords.LimitedError](err)
	switch {
	case ok:
		return rsscloud.Sayf("There were too many wrong passwords. Try again in %s.",
			limited.Wait.Round(time.Second)+time.Second)
	case errors.Is(err, passwords.ErrDenied):
		return errPassword
	case err == nil:
		u.checker.Succeeded(caller)
	}
	return err
}

// save stores a feed by XML-RPC: user, password and document. It notifies the subscribers,
// and returns the URL of the feed.
func (h *Hub) save(r *http.Request, params []rsscloud.Value) (string, error) {
	if h.users == nil {
		return "", rsscloud.Sayf("This hub stores no feeds.")
	}
	if len(params) != 3 {
		return "", rsscloud.Sayf(`Can't call "saveRss" because it takes a user, a password and the text of a feed.`)
	}
	name, document := params[0].Text, documentOf(params[2])
	addr, caller := h.caller(r)
	if err := h.users.check(r.Context(), name, params[1].Exact, addr); err != nil {
		// Do not log the name: it may be the password, in the wrong parameter.
		h.log.add("refused", "", "saveRss by %s", caller)
		if _, err := os.Stat(h.users.hashes.Path); err != nil {
			return "", h.failing(err)
		}
		return "", err
	}
	if len(document) > h.opts.MaxSave {
		return "", rsscloud.Sayf("The feed has more than %s.", humanize.Bytes(int64(h.opts.MaxSave)))
	}
	if err := wellFormed(document); err != nil {
		return "", err
	}
	dir := filepath.Join(h.states.dir, "saved", name)
	if err := atomicfile.MkdirAll(dir, 0o700); err != nil {
		return "", h.failing(err)
	}
	if !params[2].Binary {
		document = append(document, '\n')
	}
	if err := atomicfile.Write(filepath.Join(dir, savedName), document); err != nil {
		return "", h.failing(err)
	}
	where := h.public(savedPath + url.PathEscape(name) + "/" + savedName)
	h.log.add("saved", where, "%s", humanize.Bytes(int64(len(document))))
	_, _ = h.pinged(r, where) // the feed is stored, even if nobody can be notified
	return where, nil
}

// documentOf returns a document in the form in which it is stored. Base64 is stored as the
// bytes that it encodes.
func documentOf(v rsscloud.Value) []byte {
	if v.Binary {
		return []byte(v.Exact)
	}
	return inUTF8([]byte(strings.TrimSpace(v.Exact)))
}

var declaredEncoding = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(<\?xml\s[^<>]*?\sencoding\s*=\s*)("[^"<>]*"|'[^'<>]*')`)
})

// inUTF8 replaces the declared encoding of a document with UTF-8, because the text of an
// XML-RPC call is already decoded.
func inUTF8(document []byte) []byte {
	at := declaredEncoding().FindSubmatchIndex(document)
	if at == nil {
		return document
	}
	return slices.Concat(document[:at[4]], []byte(`"UTF-8"`), document[at[5]:])
}

// wellFormed returns an error, with its position, if a document is not a feed in
// well-formed XML.
func wellFormed(document []byte) error {
	d := decoder(document)
	root, ended := "", false
	bad := func(reason string) error {
		line, column := d.InputPos()
		return rsscloud.Sayf("The feed is not XML: line %d, column %d: %s.", line, column, oneField(reason))
	}
	for depth := 0; ; {
		t, err := d.Token()
		if err != nil {
			if syntax := (*xml.SyntaxError)(nil); errors.As(err, &syntax) {
				return bad(syntax.Msg)
			}
			if !ended {
				return bad(err.Error())
			}
			break
		}
		switch t := t.(type) {
		case xml.StartElement:
			if depth++; ended {
				return bad("a second root element")
			}
			if root == "" {
				root = strings.ToLower(t.Name.Local)
			}
		case xml.EndElement:
			depth--
			ended = depth == 0
		}
	}
	switch root {
	case "rss", "rdf", "feed":
		return nil
	}
	return rsscloud.Sayf("The document is not a feed: its root element is %s.", oneField(root))
}

// decoder returns a decoder for XML in any encoding, by byte order mark or declaration.
func decoder(document []byte) *xml.Decoder {
	marked := false
	for _, mark := range []string{"\xef\xbb\xbf", "\xfe\xff", "\xff\xfe"} {
		marked = marked || bytes.HasPrefix(document, []byte(mark))
	}
	d := xml.NewDecoder(transform.NewReader(bytes.NewReader(document), unicode.BOMOverride(encoding.Nop.NewDecoder())))
	d.CharsetReader = func(label string, in io.Reader) (io.Reader, error) {
		if marked {
			return in, nil
		}
		e, err := htmlindex.Get(label)
		if err != nil {
			return nil, fmt.Errorf("the encoding %s is unknown", oneField(label))
		}
		return e.NewDecoder().Reader(in), nil
	}
	return d
}

// kindOf returns the Content-Type of a stored feed.
func kindOf(document []byte) string {
	d := decoder(document)
	for {
		t, err := d.Token()
		if err != nil {
			return "application/xml"
		}
		if start, ok := t.(xml.StartElement); ok {
			if strings.EqualFold(start.Name.Local, "feed") {
				return "application/atom+xml"
			}
			return "application/rss+xml"
		}
	}
}

// savedFile returns the file of a feed that is stored here, by its URL. It reports false
// for other URLs.
func (h *shared) savedFile(feedURL string) (string, bool) {
	rest, ok := strings.CutPrefix(feedURL, h.public(savedPath))
	if !ok {
		return "", false
	}
	return h.savedBy(rest)
}

func (h *shared) savedBy(rest string) (string, bool) {
	name, file, _ := strings.Cut(rest, "/")
	if file != savedName || !userName().MatchString(name) {
		return "", false
	}
	return filepath.Join(h.states.dir, "saved", name, savedName), true
}

// saved serves a stored feed.
func (h *Hub) saved(w http.ResponseWriter, r *http.Request) {
	_, rest, _ := strings.Cut(r.URL.Path, savedPath)
	path, ok := h.savedBy(rest)
	if !ok {
		http.NotFound(w, r)
		return
	}
	data, err := atomicfile.Read(path, int64(h.opts.MaxSave)+1)
	fi, serr := os.Stat(path)
	if err != nil || serr != nil {
		http.NotFound(w, r)
		return
	}
	head := w.Header()
	head.Set("Content-Type", kindOf(data))
	head.Set("Cache-Control", "no-cache")
	head.Set("ETag", `"`+digestOf(data)[:32]+`"`)
	head.Add("Link", fmt.Sprintf(`<%s>; rel="hub"`, h.public("/websub")))
	head.Add("Link", fmt.Sprintf(`<%s>; rel="self"`, h.public(savedPath+rest)))
	http.ServeContent(w, r, "", fi.ModTime(), bytes.NewReader(data))
}
