package sharer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/stamp"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/textfile"
	"github.com/lektordir/lektor/lektordir"
)

// local is the state of the lektor-dir.
type local struct {
	subs     map[string]*subscriptions.Subscription // shared feeds, by hash
	withheld map[string]string                      // hash -> reason why the feed is not shared
	unread   map[string]bool                        // feeds that could not be read; they count as unchanged
	entries  map[string]map[string]lektordir.Ref    // feed, identity
	unknown  map[entryID]bool                       // entries whose state is uncertain; they count as unchanged

	// unchanged are the feeds that were not listed, because they agreed with the set and have
	// not changed: their stamp, a blank, and the number of marks without an entry here.
	unchanged map[string]string
	stamps    map[string]string // feeds that were listed, and did not change meanwhile
}

// entryID identifies an entry.
type entryID struct{ feed, identity string }

// reader reads a lektor-dir. It collects errors in trouble and continues.
type reader struct {
	d       *lektordir.Dir
	now     time.Time
	rule    stamp.Rule
	trouble error
}

// addTrouble adds an error to trouble; nil is allowed.
func (r *reader) addTrouble(err error) {
	if err != nil {
		r.trouble = errors.Join(r.trouble, err)
	}
}

// maxURL is the length of the longest URL that is shared, in bytes.
const maxURL = 8 << 10

// withheld returns the reason why a feed is not shared, "" if it is shared. A feed whose
// settings cannot be read is not shared, but it does not count as removed.
func (r *reader) withheld(hash string) string {
	if settings.NeverShared(r.d, hash) {
		return "has a file etc/share/never"
	}
	why, err := settings.Withheld(r.d, hash)
	r.addTrouble(err)
	return why
}

// begin begins to read the directories and the journal of a feed.
func (r *reader) begin(feed string) *stamp.Reading {
	return r.rule.Begin(unix.AT_FDCWD, nil, r.d.Join("new", feed), r.d.Join("cur", feed),
		r.d.Join(feedfiles.JournalPath(feed)))
}

// digestOf returns a text that changes with stamps, "" if one of them must not be remembered.
func digestOf(stamps []stamp.Stamp) string {
	if !stamp.Whole(stamps) {
		return ""
	}
	return digest(fmt.Append(nil, stamps))
}

// local reads the subscriptions, and lists the entries of feeds that have changed. It fails if
// the directories of any feed cannot be listed, because a missing entry counts as deleted.
func (r *reader) local(ctx context.Context, base *baseline) (*local, error) {
	l := &local{subs: map[string]*subscriptions.Subscription{}, withheld: map[string]string{},
		unread:  map[string]bool{},
		entries: map[string]map[string]lektordir.Ref{}, unknown: map[entryID]bool{}, unchanged: map[string]string{},
		stamps: map[string]string{}}
	hashes, err := r.d.FeedHashes()
	if err != nil {
		return nil, err
	}
	for _, hash := range hashes {
		if why := r.withheld(hash); why != "" {
			l.withheld[hash] = why
			continue
		}
		r.subscription(l, hash)
		listed := base.sub(hash).listed
		now := digestOf(r.begin(hash).Before)
		switch {
		case l.withheld[hash] != "", !entryname.IsFeedHash(hash):
			continue
		case l.subs[hash] != nil && now != "" && !r.rule.Shared && strings.HasPrefix(listed, now+" "):
			l.unchanged[hash] = listed
			continue
		}
		if err := r.listFeed(ctx, l, hash); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// subscription reads the subscription of a feed into l.
func (r *reader) subscription(l *local, hash string) {
	delete(l.subs, hash)
	sub, err := subscriptions.ReadWhole(r.d, hash)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return // not subscribed to
	case err != nil:
		// A file that cannot be read was not removed.
		l.unread[hash] = true
		r.addTrouble(fmt.Errorf("%w; the shared subscription stays as it is", err))
		return
	case !feedurl.IsHTTP(sub.URL) || !feedurl.IsHTTP(sub.ID):
		l.withheld[hash] = "is not from an http or https URL"
		return
	case len(sub.URL) > maxURL || len(sub.ID) > maxURL:
		l.withheld[hash] = "has a URL of more than 8 KiB"
		return
	}
	var categories []string
	for _, c := range sub.Categories {
		categories = withCategory(categories, c)
	}
	sub.Categories = categories
	if sub.Alias = strings.TrimSpace(textfile.OneLine(sub.Alias)); sub.Alias == strings.TrimSpace(sub.Name) {
		sub.Alias = ""
	}
	l.subs[hash] = sub
}

// listing lists entries for a caller that treats a missing entry as deleted. It ignores only
// files that are not entries, and fails on any other error.
func listing(ctx context.Context, d *lektordir.Dir, feeds ...string) ([]lektordir.Ref, error) {
	// A withdrawn entry still exists, so it is listed.
	refs, err := d.List(ctx, lektordir.ListOptions{Withdrawn: true, Strict: true, Feeds: feeds})
	for _, e := range humanize.Errors(err) {
		if bad, ok := errors.AsType[*lektordir.MalformedError](e); !ok || !bad.NoEntry {
			return nil, e
		}
	}
	return refs, context.Cause(ctx)
}

// listFeed lists the entries of a feed.
func (r *reader) listFeed(ctx context.Context, l *local, feed string) error {
	reading := r.begin(feed)
	refs, err := listing(ctx, r.d, feed)
	if err != nil {
		return err
	}
	here, stable := make(map[string]lektordir.Ref, len(refs)), l.subs[feed] != nil
	for _, ref := range refs {
		identity, err := r.identityOf(ref)
		if err != nil {
			return err
		}
		if identity != "" {
			here[identity] = ref
		}
		stable = stable && ref.Identity() != "" // an id may change without the name
	}
	if now := digestOf(reading.End()); now != "" && stable {
		l.stamps[feed] = now
	}
	l.entries[feed] = here
	return nil
}

// identityOf returns the identity in the name of an entry. If the name has none, because
// another fetcher wrote it, it returns a hash of the entry's id, or "" if there is no id.
func (r *reader) identityOf(ref lektordir.Ref) (string, error) {
	if identity := ref.Identity(); identity != "" {
		return identity, nil
	}
	e, err := r.d.ReadEntry(ref, lektordir.FieldID)
	if isUnreadable(err) {
		return "", err
	}
	if err != nil || e.ID == "" {
		return "", nil
	}
	sum := sha256.Sum256([]byte(e.ID))
	return hex.EncodeToString(sum[:8]), nil
}

// entryIDs maps ids of entries to identities. An id that several entries have maps to "".
func (r *reader) entryIDs(here map[string]lektordir.Ref) (map[string]string, error) {
	ids := map[string]string{}
	for identity, ref := range here {
		entry, err := r.d.ReadEntry(ref, lektordir.FieldID)
		if isUnreadable(err) {
			return nil, err // it may have the same id as another, so no id is certain
		}
		if err != nil || entry.ID == "" {
			continue
		}
		id := feedurl.Public(entry.ID)
		if _, several := ids[id]; several {
			identity = ""
		}
		ids[id] = identity
	}
	return ids, nil
}

// isUnreadable reports whether a file exists but could not be read.
func isUnreadable(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && !errors.Is(err, fs.ErrNotExist)
}

// deletes returns a function that reports whether a program of lektor may have deleted entries of a
// feed since the last commit. These programs leave the directories of feeds, and a trace in
// etc/view.
func (r *reader) deletes() func(feed string) bool {
	last, err := os.Stat(r.d.Join(shareDir, storeFile+commitsSuffix))
	traces, _ := filepath.Glob(r.d.Join("etc/view/undo/*"))
	used := err == nil && slices.ContainsFunc(append(traces, r.d.Join("etc/view/expired")), func(path string) bool {
		fi, err := os.Stat(path)
		return err == nil && fi.ModTime().After(last.ModTime())
	})
	return func(feed string) bool { return used && atomicfile.Exists(r.d.Join("new", feed)) }
}

// identities returns the identities of a feed's entries under its lock, with those in tmp/ that are not
// being deleted. If a fetcher holds the lock, it returns nil.
func (r *reader) identities(ctx context.Context, w *commit.Writer, feed string) (map[string]bool, error) {
	t, err := w.Begin(feed)
	if errors.As(err, new(*commit.BusyError)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer t.Close()
	here := map[string]bool{}
	names, err := atomicfile.Optional(os.ReadDir(r.d.Join("tmp", feed)))
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if unique, info, _ := strings.Cut(n.Name(), ";"); !strings.HasPrefix(info, "gone") {
			here[lektordir.Ref{Feed: feed, Unique: unique}.Identity()] = true
		}
	}
	refs, err := listing(ctx, r.d, feed)
	for _, ref := range refs {
		identity, bad := r.identityOf(ref)
		err = cmp.Or(err, bad)
		here[identity] = true
	}
	return here, err
}
