package hub

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/http/limiter"
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
	path string
	now  func() time.Time

	checking sync.Mutex // one password check at a time, because it is slow
	compare  func(hash, password []byte) error

	mu     sync.Mutex
	stamp  time.Time
	hashes map[string][]byte
	wrong  map[string]failures // by caller, because a limit by user would let anybody lock a user out
}

// failures counts wrong passwords.
type failures struct {
	n    int
	last time.Time
}

const (
	freeTries = 5 // wrong passwords without a wait
	mostWait  = 15 * time.Minute
)

// wrongWait is the wait after each further wrong password.
var wrongWait = limiter.Backoff{Base: time.Second, Cap: mostWait}

func readUsers(path string, now func() time.Time) (*users, error) {
	u := &users{path: path, now: now, compare: bcrypt.CompareHashAndPassword, wrong: map[string]failures{}}
	return u, u.load()
}

// load reads the file if it has changed: lines NAME:HASH, as written by "htpasswd -B".
func (u *users) load() error {
	fi, err := os.Stat(u.path)
	if err != nil {
		return err
	}
	if u.hashes != nil && fi.ModTime().Equal(u.stamp) {
		return nil
	}
	data, err := atomicfile.Read(u.path, 1<<20)
	if err != nil {
		return err
	}
	hashes := map[string][]byte{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimRight(lines.Text(), "\r")
		if line == "" || line[0] == '#' {
			continue
		}
		name, hash, _ := strings.Cut(line, ":")
		if _, err := bcrypt.Cost([]byte(hash)); err != nil || !userName().MatchString(name) {
			return fmt.Errorf("%s:%d: expected NAME:HASH with a bcrypt hash, as \"htpasswd -B\" writes it", u.path, n)
		}
		hashes[name] = []byte(hash)
	}
	u.stamp, u.hashes = fi.ModTime(), hashes
	return lines.Err()
}

const errPassword = rsscloud.Sentence("The user or the password is wrong.")

// check returns an error if a password is wrong. After several wrong ones, the caller must
// wait, longer each time.
func (u *users) check(name, password, caller string) error {
	u.mu.Lock()
	err := u.load()
	hash, hasHash := u.hashes[name]
	if !hasHash {
		hash = u.another(name)
	}
	wait := u.wait(caller)
	u.mu.Unlock()
	if err != nil {
		return err
	}
	if wait > 0 {
		return rsscloud.Sayf("There were too many wrong passwords. Try again in %s.",
			wait.Round(time.Second)+time.Second)
	}
	u.checking.Lock()
	err = u.compare(hash, []byte(password))
	u.checking.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	if err != nil || !hasHash {
		u.failed(caller)
		return errPassword
	}
	delete(u.wrong, caller)
	return nil
}

// another returns the hash of a known user for an unknown name, always the same hash for a
// name. The password is compared with it, so that the answer takes as long as for a known
// name. The caller holds mu.
func (u *users) another(name string) []byte {
	if len(u.hashes) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(u.hashes))
	sum := sha256.Sum256([]byte(name))
	return u.hashes[names[binary.BigEndian.Uint64(sum[:])%uint64(len(names))]]
}

// wait returns how long a caller must wait. The caller holds mu.
func (u *users) wait(caller string) time.Duration {
	f := u.wrong[caller]
	if f.n <= freeTries {
		return 0
	}
	d := wrongWait.Wait(f.n-freeTries, 0, 0)
	remaining := f.last.Add(d).Sub(u.now())
	if remaining > d {
		return 0 // set by a wrong clock
	}
	return remaining
}

func (u *users) failed(caller string) {
	if len(u.wrong) > remember {
		for k, f := range u.wrong {
			if u.now().Sub(f.last) > mostWait {
				delete(u.wrong, k)
			}
		}
		if len(u.wrong) > remember {
			clear(u.wrong)
		}
	}
	u.wrong[caller] = failures{u.wrong[caller].n + 1, u.now()}
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
	_, caller := h.caller(r)
	if err := h.users.check(name, params[1].Exact, caller); err != nil {
		// Do not log the name: it may be the password, in the wrong parameter.
		h.shared.log.add("refused", "", "saveRss by %s", caller)
		if _, err := os.Stat(h.users.path); err != nil {
			return "", h.shared.failing(err)
		}
		return "", err
	}
	if len(document) > h.shared.opts.MaxSave {
		return "", rsscloud.Sayf("The feed has more than %s.", humanize.Bytes(int64(h.shared.opts.MaxSave)))
	}
	if err := wellFormed(document); err != nil {
		return "", err
	}
	dir := filepath.Join(h.shared.states.dir, "saved", name)
	if err := atomicfile.MkdirAll(dir, 0o700); err != nil {
		return "", h.shared.failing(err)
	}
	if !params[2].Binary {
		document = append(document, '\n')
	}
	if err := atomicfile.Write(filepath.Join(dir, savedName), document); err != nil {
		return "", h.shared.failing(err)
	}
	where := h.shared.public(savedPath + url.PathEscape(name) + "/" + savedName)
	h.shared.log.add("saved", where, "%s", humanize.Bytes(int64(len(document))))
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
	if h.opts.Public == nil {
		return "", false
	}
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
	path, ok := h.shared.savedBy(rest)
	if !ok {
		http.NotFound(w, r)
		return
	}
	data, err := atomicfile.Read(path, int64(h.shared.opts.MaxSave)+1)
	fi, serr := os.Stat(path)
	if err != nil || serr != nil {
		http.NotFound(w, r)
		return
	}
	head := w.Header()
	head.Set("Content-Type", kindOf(data))
	head.Set("Cache-Control", "no-cache")
	head.Set("ETag", `"`+digestOf(data)[:32]+`"`)
	if h.shared.opts.Public != nil {
		head.Add("Link", fmt.Sprintf(`<%s>; rel="hub"`, h.shared.public("/websub")))
		head.Add("Link", fmt.Sprintf(`<%s>; rel="self"`, h.shared.public(savedPath+rest)))
	}
	http.ServeContent(w, r, "", fi.ModTime(), bytes.NewReader(data))
}
