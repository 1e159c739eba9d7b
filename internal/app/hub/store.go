package hub

import (
	"cmp"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/lektordir"
)

// states is the directory with the state of a hub. Files are read on each use, so changes
// by other programs have effect at once.
//
//	feeds/ab/abcd…/feed        state of a feed; the name is the SHA-1 of its URL
//	feeds/ab/abcd…/subs/KEY    a subscription
//	jobs                       pending work, see jobs
//	saved/USER/rss.xml         a feed that is stored here
//	log, log.1                 what happened
//	lock                       held by the running hub
//
// A file of values has a line for each: name, tab, value. Lines with unknown names are
// kept. Times are RFC 3339 in UTC. Files are replaced atomically.
type states struct{ dir string }

// feedState is the recorded state of a feed.
type feedState struct {
	URL     string
	Digest  string // SHA-256 of the document that subscribers know
	Length  int    // length of that document, in bytes
	Changed time.Time
}

// unreserved are the characters that need no percent-encoding (RFC 3986, section 2.3).
const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"

var percentEncoded = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`%[0-9A-Fa-f]{2}`) })

// plain normalizes the percent-encoding of a URL. It decodes unreserved characters, which
// "Hubs MUST always decode" (WebSub, section 5.1.1), and writes the others in upper case
// (RFC 3986, section 6.2.2).
func plain(u string) string {
	return percentEncoded().ReplaceAllStringFunc(u, func(code string) string {
		if c, err := url.PathUnescape(code); err == nil && strings.Contains(unreserved, c) {
			return c
		}
		return strings.ToUpper(code)
	})
}

// hashOf returns the name of a feed's directory. It is the same for URLs that differ only
// in the case of scheme and host, a default port, a fragment, or unneeded percent-encoding.
func hashOf(feedURL string) string {
	id := lektordir.NormalizeID(plain(feedURL))
	if u, path, ok := strings.Cut(id, "://"); ok && !strings.ContainsAny(path, "/?") {
		id = u + "://" + path + "/"
	}
	return fmt.Sprintf("%x", sha1.Sum([]byte(id)))
}

// openStates creates missing directories. They are private, because they hold callbacks and
// secrets.
func openStates(dir string) (states, error) {
	for _, d := range []string{dir, filepath.Join(dir, "feeds"), filepath.Join(dir, "saved")} {
		if err := atomicfile.MkdirAll(d, 0o700); err != nil {
			return states{}, err
		}
	}
	return states{dir}, states{dir}.trusted()
}

// trusted returns an error if another user may have written the state.
func (st states) trusted() error {
	return atomicfile.TrustedState(st.dir, "feeds", "saved", "jobs", "log", "log.1")
}

func (st states) feed(hash string) string { return filepath.Join(st.dir, "feeds", hash[:2], hash) }
func (st states) subs(hash string) string { return filepath.Join(st.feed(hash), "subs") }

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func when(s string) time.Time { t, _ := time.Parse(time.RFC3339, s); return t }

// readValues reads a file of values. If that fails, the values are empty.
func readValues(path string) (*values.Values, error) {
	data, err := atomicfile.Read(path, 64<<10)
	return values.Parse(data, '\t'), err
}

// readFeed reads the state of a feed, the zero value if there is none.
func (st states) readFeed(hash string) (feedState, error) {
	v, err := readValues(filepath.Join(st.feed(hash), "feed"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	var f feedState
	v.Read(f.fields())
	return f, err
}

func (f *feedState) fields() []values.Field {
	return []values.Field{{Name: "url", Var: &f.URL}, {Name: "digest", Var: &f.Digest},
		{Name: "length", Var: &f.Length}, {Name: "changed", Var: &f.Changed}}
}

func (st states) writeFeed(hash string, f feedState) error {
	if err := atomicfile.MkdirAll(st.feed(hash), 0o700); err != nil {
		return err
	}
	path := filepath.Join(st.feed(hash), "feed")
	v, err := readValues(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // the user's own lines would be lost
	}
	v.Write(f.fields())
	return atomicfile.WriteUnsynced(path, v.Text())
}

// noteFeed writes the state of a feed with its first subscriber, from the document that was
// just read. It keeps a state that exists already.
func (st states) noteFeed(hash string, f feedState) error {
	return st.locked(hash, func() error {
		if old, err := st.readFeed(hash); err != nil || old.Digest != "" {
			return err
		}
		return st.writeFeed(hash, f)
	})
}

// subscribedTo reports whether a feed has a subscription. If the directory cannot be read,
// it reports true.
func (st states) subscribedTo(hash string) bool {
	f, err := os.Open(st.subs(hash))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	for {
		list, err := f.Readdirnames(16)
		if slices.ContainsFunc(list, isKey) {
			return true // not a temporary file of a killed hub
		}
		if err != nil {
			return err != io.EOF
		}
	}
}

// read reads a subscription. It fails if a required value is missing.
func (st states) read(hash, key string) (subscription, error) {
	s, _, err := st.readSubscription(hash, key)
	return s, err
}

func (st states) readSubscription(hash, key string) (s subscription, v *values.Values, err error) {
	path := filepath.Join(st.subs(hash), key)
	if v, err = readValues(path); err != nil {
		return s, v, err
	}
	if s.get(v); s.Callback == "" || s.Protocol == "" || s.Feed == "" {
		err = fmt.Errorf("%s: not a subscription: callback, protocol or feed is missing", path)
	}
	return s, v, err
}

// notifiable reads subscriptions to a feed, and returns those that are to be notified.
// unread are the keys of existing subscriptions that could not be read, and ended the others;
// err is the first error.
func (st states) notifiable(hash string, keys []string, now time.Time) (list []subscription, unread, ended []string,
	err error) {
	for _, key := range keys {
		switch s, rerr := st.read(hash, key); {
		case rerr == nil && s.wants(now) && s.key() == key:
			list = append(list, s)
		case rerr == nil || errors.Is(rerr, fs.ErrNotExist):
			ended = append(ended, key)
		default:
			unread, err = append(unread, key), cmp.Or(err, rerr)
		}
	}
	return list, unread, ended, err
}

// apply applies a transition to a subscription and updates its file. It returns the
// subscription before and after. Without a subscription, only verified succeeds. The change is
// durable when apply returns: a file that is replaced without a sync may be empty after a power
// cut, and the subscription would be lost.
func (st states) apply(hash, key string, do transition, now time.Time) (was, is subscription, err error) {
	err = st.locked(hash, func() error {
		var v *values.Values
		var err error
		if was, v, err = st.readSubscription(hash, key); err != nil {
			was = subscription{}
		}
		is = was
		do(&is, now)
		path := filepath.Join(st.subs(hash), key)
		switch {
		case err != nil && is.Callback == "":
			return err
		case is == was:
			return nil
		case is.Callback == "":
			return atomicfile.Remove(path)
		}
		if err := atomicfile.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		return atomicfile.Write(path, is.text(v))
	})
	return was, is, err
}

// locked calls do while it holds the lock of a feed, which other processes respect, too. It is that of the directory
// feeds/ab, which is never removed.
func (st states) locked(hash string, do func() error) error {
	dir := filepath.Dir(st.feed(hash))
	if err := atomicfile.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := atomicfile.Hold(f, unix.LOCK_EX); err != nil {
		return err
	}
	return do()
}

// keys returns the keys of the subscriptions to a feed.
func (st states) keys(hash string) ([]string, error) {
	names, err := atomicfile.Optional(atomicfile.Names(st.subs(hash)))
	return slices.DeleteFunc(names, func(name string) bool { return !isKey(name) }), err
}

// each calls visit for all feeds, until it returns false.
func (st states) each(visit func(hash string) bool) error {
	prefixes, err := atomicfile.Optional(os.ReadDir(filepath.Join(st.dir, "feeds")))
	for _, prefix := range prefixes {
		hashes, err := atomicfile.Optional(atomicfile.Names(filepath.Join(st.dir, "feeds", prefix.Name())))
		if err != nil {
			return err
		}
		for _, h := range hashes {
			if isKey(h) && strings.HasPrefix(h, prefix.Name()) && !visit(h) {
				return nil
			}
		}
	}
	return err
}

// swept is the result of a sweep.
type swept struct {
	Feeds, Kept, Expired, Failed int
	callers                      map[string]int // caller -> number of subscriptions
}

// sweep counts the subscriptions. With clean, it removes those that have expired or failed
// three times, and feeds without subscriptions.
func (st states) sweep(clean bool, now func() time.Time, stop func() bool, warn func(string, ...any)) (swept, error) {
	s := swept{callers: map[string]int{}}
	err := st.each(func(hash string) bool {
		keys, err := st.keys(hash)
		if err != nil {
			warn("%v", err)
		}
		remaining := 0
		for _, key := range keys {
			sub, err := st.read(hash, key)
			if err == nil && clean && !sub.wants(now()) {
				sub, err = st.expire(hash, key, now())
			}
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				warn("%v", err)
				remaining++
			case sub.givenUp():
				s.Failed++
			case !sub.wants(now()):
				s.Expired++
			default:
				s.Kept++
				s.callers[sub.Caller]++
				remaining++
			}
		}
		switch {
		case remaining > 0:
			s.Feeds++
		case clean:
			st.forget(hash)
		}
		return !stop()
	})
	return s, err
}

// expire removes a subscription, if that is still right under the lock.
func (st states) expire(hash, key string, now time.Time) (subscription, error) {
	var sub subscription
	err := st.locked(hash, func() (err error) {
		if sub, err = st.read(hash, key); err == nil && !sub.wants(now) {
			err = os.Remove(filepath.Join(st.subs(hash), key))
		}
		return err
	})
	return sub, err
}

// forget removes a feed, if it has no subscriptions.
func (st states) forget(hash string) {
	_ = st.locked(hash, func() error {
		if err := os.Remove(st.subs(hash)); err != nil {
			return err // not empty
		}
		return os.RemoveAll(st.feed(hash))
	})
}
