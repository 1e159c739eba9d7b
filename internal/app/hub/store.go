package hub

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/values"
	"github.com/lektordir/lektor/lektordir"
)

// states is the directory of a hub's state. Everything is in files, and is read when
// it is asked for: what another program changed counts at once.
//
//	feeds/ab/abcd…/feed        what is known of a feed; the name is the SHA-1 of its URL
//	feeds/ab/abcd…/subs/KEY    a subscription
//	jobs                       what is done later, see jobs
//	saved/USER/rss.xml         a feed that is stored here
//	log, log.1                 what happened
//	lock                       held by the one hub that there can be
//
// A file of values has one a line, its name, a tab, and the value; a line with an unknown
// name, of another version or the user's own, is kept as it is. Times are RFC 3339 in
// UTC. Files are replaced atomically.
type states struct{ dir string }

// feedState is what is known of a feed.
type feedState struct {
	URL     string
	Digest  string // SHA-256 of the document that subscribers know of
	Length  int    // of that, in bytes
	Changed time.Time
}

// plain writes a URL without percent-encoding that need not be, which "Hubs MUST always
// decode" (WebSub, section 5.1.1), and what must be with capitals (RFC 3986, 6.2.2).
func plain(u string) string {
	var b strings.Builder
	for i := 0; i < len(u); i++ {
		if u[i] != '%' || i+2 >= len(u) {
			b.WriteByte(u[i])
			continue
		}
		c, err := hex.DecodeString(u[i+1 : i+3])
		switch {
		case err != nil:
			b.WriteByte('%')
			continue
		case c[0] < 0x80 && (unicode.IsLetter(rune(c[0])) || unicode.IsDigit(rune(c[0])) || strings.IndexByte("-._~", c[0]) >= 0):
			b.WriteByte(c[0])
		default:
			b.WriteString(strings.ToUpper(u[i : i+3]))
		}
		i += 2
	}
	return b.String()
}

// hashOf names a feed: URLs that differ in the case of scheme and host, in the
// scheme's own port, in a fragment and in percent-encoding that need not be are the
// same.
func hashOf(feedURL string) string {
	id := lektordir.NormalizeID(plain(feedURL))
	if u, path, ok := strings.Cut(id, "://"); ok && !strings.ContainsAny(path, "/?") {
		id = u + "://" + path + "/"
	}
	return fmt.Sprintf("%x", sha1.Sum([]byte(id)))
}

// openStates makes the directory where there is none. Nobody else may read it, as
// callbacks and secrets are in it.
func openStates(dir string) (states, error) {
	for _, d := range []string{dir, filepath.Join(dir, "feeds"), filepath.Join(dir, "saved")} {
		if err := atomicfile.MkdirAll(d, 0o700); err != nil {
			return states{}, err
		}
	}
	return states{dir}, nil
}

func (st states) feed(hash string) string { return filepath.Join(st.dir, "feeds", hash[:2], hash) }
func (st states) subs(hash string) string { return filepath.Join(st.feed(hash), "subs") }

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func when(s string) time.Time { t, _ := time.Parse(time.RFC3339, s); return t }

// readValues reads a file of values, an empty one with the error that there is none.
func readValues(path string) (*values.Values, error) {
	data, err := atomicfile.Read(path, 64<<10)
	return values.Parse(data, '\t'), err
}

// readFeed reads what is known of a feed, the zero value for one that is not.
func (st states) readFeed(hash string) (feedState, error) {
	v, err := readValues(filepath.Join(st.feed(hash), "feed"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return feedState{v.Get("url"), v.Get("digest"), v.Int("length"), v.Time("changed")}, err
}

func (st states) writeFeed(hash string, f feedState) error {
	if err := os.MkdirAll(st.feed(hash), 0o700); err != nil {
		return err
	}
	path := filepath.Join(st.feed(hash), "feed")
	v, err := readValues(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // the user's own lines in it would be lost
	}
	v.Set("url", f.URL)
	v.Set("digest", f.Digest)
	v.SetInt("length", f.Length)
	v.SetTime("changed", f.Changed)
	return atomicfile.WriteUnsynced(path, v.Text())
}

// noteFeed writes what is known of a feed with its first subscriber, who knows of the
// document that was read just now. It keeps what is known of the feed already.
func (st states) noteFeed(hash string, f feedState) error {
	return st.locked(hash, true, func() error {
		if old, err := st.readFeed(hash); err != nil || old.Digest != "" {
			return err
		}
		return st.writeFeed(hash, f)
	})
}

// subscribedTo reports whether there is a subscription to a feed. If the directory cannot be
// read, there may be one.
func (st states) subscribedTo(hash string) bool {
	f, err := os.Open(st.subs(hash))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	for {
		list, err := f.Readdirnames(16)
		if slices.ContainsFunc(list, isKey) {
			return true // and no temporary file that a kill has left
		}
		if err != nil {
			return err != io.EOF
		}
	}
}

// read reads a subscription. Half of one, which no hub of ours wrote, is an error.
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
		err = fmt.Errorf("%s: it is no subscription: callback, protocol or feed is missing", path)
	}
	return s, v, err
}

// notifiable reads those of some subscriptions to a feed that want to be notified. It
// returns the keys of those that are there and could not be read, too, with the first error.
func (st states) notifiable(hash string, keys []string, now time.Time) (list []subscription, unread []string, err error) {
	for _, key := range keys {
		switch s, rerr := st.read(hash, key); {
		case errors.Is(rerr, fs.ErrNotExist):
		case rerr != nil:
			unread, err = append(unread, key), cmp.Or(err, rerr)
		case s.wants(now) && s.key() == key:
			list = append(list, s)
		}
	}
	return list, unread, err
}

// apply lets a subscription take an event, and makes the disk follow; it returns it
// before and after. One that is not there takes nothing but verified. With sync it is
// on the disk when apply returns.
func (st states) apply(hash, key string, event any, now time.Time, sync bool) (was, is subscription, do change, err error) {
	_, begins := event.(verified)
	err = st.locked(hash, begins, func() error {
		var v *values.Values
		var err error
		if was, v, err = st.readSubscription(hash, key); err != nil && !begins {
			return err
		}
		path := filepath.Join(st.subs(hash), key)
		switch is, do = was.on(event, now); {
		case do == keep:
			return nil
		case do == remove:
			return atomicfile.Remove(path)
		case sync:
			return atomicfile.Write(path, is.text(v))
		}
		return atomicfile.WriteUnsynced(path, is.text(v))
	})
	return was, is, do, err
}

// locked does something with a feed while nobody else does, be it in another
// process. Without create a feed that is not there is an error.
func (st states) locked(hash string, create bool, do func() error) error {
	dir := st.subs(hash)
	for try := 0; ; try++ {
		if create {
			if err := atomicfile.MkdirAll(dir, 0o700); err != nil {
				return err
			}
		}
		f, err := os.Open(dir)
		if err != nil {
			if create && errors.Is(err, fs.ErrNotExist) && try < 100 {
				continue // it was just swept away
			}
			return err
		}
		there := false
		if err = atomicfile.Hold(f, unix.LOCK_EX); err == nil {
			there, err = atomicfile.InPlace(f) // or swept away while we waited
		}
		if there {
			err = do()
		}
		if _ = f.Close(); there {
			return err
		}
		if !create || !errors.Is(err, fs.ErrNotExist) && err != nil || try >= 100 {
			return err
		}
	}
}

// keys lists the subscriptions to a feed.
func (st states) keys(hash string) ([]string, error) {
	return names(st.subs(hash))
}

// names lists what is in a directory but temporary files, unordered.
func names(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := f.Readdirnames(-1)
	n := 0
	for _, name := range all {
		if name[0] != '.' {
			all[n] = name
			n++
		}
	}
	return all[:n], err
}

// each visits all feeds, until visit says that it is enough.
func (st states) each(visit func(hash string) bool) error {
	shelves, err := names(filepath.Join(st.dir, "feeds"))
	if err != nil {
		return err
	}
	for _, shelf := range shelves {
		hashes, err := names(filepath.Join(st.dir, "feeds", shelf))
		if err != nil {
			return err
		}
		for _, h := range hashes {
			if len(h) == 2*sha1.Size && strings.HasPrefix(h, shelf) && !visit(h) {
				return nil
			}
		}
	}
	return nil
}

// swept is what a sweep found.
type swept struct {
	Feeds, Kept, Expired, Failed int
	callers                      map[string]int // subscriptions of each
}

// sweep counts the subscriptions, and with clean removes those that have expired or
// failed three times, and the feeds that nobody subscribes to.
func (st states) sweep(clean bool, now func() time.Time, stop func() bool, warn func(string, ...any)) (swept, error) {
	s := swept{callers: map[string]int{}}
	err := st.each(func(hash string) bool {
		keys, err := st.keys(hash)
		if err != nil {
			warn("%v", err)
		}
		left := 0
		for _, key := range keys {
			sub, err := st.read(hash, key)
			if err == nil && clean && !sub.wants(now()) {
				sub, err = st.expire(hash, key, now())
			}
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				warn("%v", err)
				left++
			case sub.givenUp():
				s.Failed++
			case !sub.wants(now()):
				s.Expired++
			default:
				s.Kept++
				s.callers[sub.Caller]++
				left++
			}
		}
		switch {
		case left > 0:
			s.Feeds++
		case clean:
			st.forget(hash)
		}
		return !stop()
	})
	return s, err
}

// expire removes a subscription, if it is still to be removed when nobody else can
// change it.
func (st states) expire(hash, key string, now time.Time) (subscription, error) {
	var sub subscription
	err := st.locked(hash, false, func() (err error) {
		if sub, err = st.read(hash, key); err == nil && !sub.wants(now) {
			err = os.Remove(filepath.Join(st.subs(hash), key))
		}
		return err
	})
	return sub, err
}

// forget removes a feed without subscriptions, unless one has come meanwhile.
func (st states) forget(hash string) {
	_ = st.locked(hash, false, func() error {
		if err := os.Remove(st.subs(hash)); err != nil {
			return err // it is not empty
		}
		return os.RemoveAll(st.feed(hash))
	})
}
