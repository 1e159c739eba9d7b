package subscriptions

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/lektordir"
)

// Change is a change of a setting of a feed that can be taken back. A value "" is that of a setting that is not
// set. The value of the url has the origin as a second line, if the feed has one, since neither is restored without
// the other. Besides the settings, there are the keys of a feed that is purged: its id, and whether it is never
// shared.
type Change struct{ Hash, Key, Old, New string }

// The keys of a [Change] that are not settings.
const (
	keyID    = "id"
	keyNever = "never-shared"
)

// Recorder records changes of a feed before they are made. It is called under the feed's lock, except for a purge.
// nil records nothing.
type Recorder func(changes ...Change)

// note calls the recorder with those changes that change something, and remembers commands that they end.
func (record Recorder) note(d *lektordir.Dir, changes ...Change) {
	changes = slices.DeleteFunc(changes, func(c Change) bool { return c.Old == c.New })
	if record == nil || len(changes) == 0 {
		return
	}
	for _, c := range changes {
		if isCommand(c.Key, c.Old) && feedfiles.Trusted(d, c.Hash, c.Key) == nil {
			rememberCommand(d, c)
		}
	}
	record(changes...)
}

// valueOf returns the value of a key of a [Change].
func valueOf(d *lektordir.Dir, hash, key string) (string, error) {
	switch key {
	case keyID:
		return atomicfile.Optional(atomicfile.Line(d.Join("src", hash, "id")))
	case keyNever:
		if settings.NeverShared(d, hash) {
			return "yes", nil
		}
		return "", nil
	case feedfiles.FileURL:
		url, err := settings.Get(d, hash, feedfiles.FileURL)
		origin, oerr := settings.Get(d, hash, feedfiles.FileOrigin)
		return withOrigin(url, origin), errors.Join(err, oerr)
	}
	return settings.Get(d, hash, key)
}

// withOrigin returns the value of a url with its origin.
func withOrigin(url, origin string) string {
	if url == "" || origin == "" {
		return url
	}
	return url + "\n" + origin
}

// changeOf returns the change that sets a setting to a value. ok is false if the present value cannot be read.
func changeOf(d *lektordir.Dir, hash string, s *settings.Setting, value string) (c Change, ok bool) {
	c = Change{Hash: hash, Key: s.Name, New: storedValue(s, value)}
	if s.Name == feedfiles.FileOrigin {
		url, err := settings.Get(d, hash, feedfiles.FileURL)
		if err != nil || url == "" {
			return c, false
		}
		c.Key, c.New = feedfiles.FileURL, withOrigin(url, c.New)
	}
	var err error
	c.Old, err = valueOf(d, hash, c.Key)
	return c, err == nil
}

// storedValue returns a value as [settings.Get] returns it after it was set.
func storedValue(s *settings.Setting, value string) string {
	switch {
	case s.Path == feedfiles.PathCategories:
		var lines []string
		for line := range strings.SplitSeq(value, "\n") {
			if line = feedfiles.OneLine(line); line != "" {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "\n")
	case s.InState():
		return strings.TrimRight(value, "\n")
	}
	return feedfiles.OneLine(value)
}

// begun returns the changes that a new subscription makes to the settings that stay when it ends, and its url.
func begun(d *lektordir.Dir, s *Subscription) []Change {
	changes := []Change{{s.Hash, feedfiles.FileURL, "", withOrigin(feedfiles.OneLine(s.URL),
		feedfiles.OneLine(s.Origin))}}
	alias, _ := settings.Lookup("alias")
	if c, ok := changeOf(d, s.Hash, alias, s.Alias); ok && s.Alias != "" {
		changes = append(changes, c)
	}
	categories, _ := settings.Lookup("categories")
	if c, ok := changeOf(d, s.Hash, categories, strings.Join(s.Categories, "\n")); ok {
		changes = append(changes, c)
	}
	return changes
}

// ended returns the changes that the end of a subscription makes, or with purge the removal of the feed.
func ended(d *lektordir.Dir, hash string, purge bool) (changes []Change) {
	keys := slices.DeleteFunc(slices.Clone(settings.Names), func(key string) bool {
		return key == feedfiles.FileOrigin || !purge && slices.Contains([]string{"alias", "categories", "keep"}, key)
	})
	if purge {
		keys = append(keys, keyID, keyNever)
	}
	for _, key := range keys {
		if old, err := valueOf(d, hash, key); err == nil {
			changes = append(changes, Change{hash, key, old, ""})
		}
	}
	return changes
}

// Outcome is the result of taking back a change.
type Outcome string

const (
	Restored Outcome = "restored" // the setting has the old value again
	Same     Outcome = "same"     // it had the old value already
	Differs  Outcome = "changed"  // it has neither value, so it was changed since and stays
	Refused  Outcome = "refused"  // the old value is a command that is not known to be the user's, or would not be run
	Lost     Outcome = "lost"     // the values were removed from the record
)

// TakeBack takes back changes of a feed under its lock, from the last to the first, and returns an outcome for each.
// A setting gets its old value if it has the new one. The changes may come from a file that somebody else has
// written: a command is set only if [Recorder] has recorded it. The error may be a [*commit.BusyError].
func TakeBack(w *commit.Writer, d *lektordir.Dir, hash string, changes []Change, dryRun bool) ([]Outcome, error) {
	for _, c := range changes {
		if err := c.Check(); err != nil || c.Hash != hash {
			return nil, cmp.Or(err, errors.New("a change is that of another feed"))
		}
	}
	t, err := w.Begin(hash)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if err := errors.Join(feedfiles.Guard(d, hash, "fetch"), feedfiles.Guard(d, hash, "view"),
		schedule.CheckMarkers(d)); err != nil {
		return nil, err
	}
	b := &takingBack{d: d, hash: hash, before: map[string]string{}, after: map[string]string{}}
	if err := b.read(changes); err != nil {
		return nil, err
	}
	outcomes := b.decide(changes)
	if dryRun || !slices.Contains(outcomes, Restored) {
		return outcomes, nil
	}
	return outcomes, b.write()
}

// Check returns an error for a change that no [Recorder] has recorded.
func (c Change) Check() error {
	if !entryname.IsFeedHash(c.Hash) {
		return fmt.Errorf("%q is not the hash of a feed", c.Hash)
	}
	if strings.Contains(c.Old, "\x00") {
		return fmt.Errorf("the value of %s has a NUL", c.Key)
	}
	lines := 1 + strings.Count(c.Old, "\n")
	switch c.Key {
	case keyID:
		if c.Old != c.New && (c.New != "" || lines > 1 || lektordir.FeedHash(c.Old) != c.Hash) {
			return errors.New("the id is not that of the feed")
		}
		return nil
	case keyNever:
		return nil
	case feedfiles.FileURL:
		lines--
	case feedfiles.FileOrigin:
		return &settings.UnknownSettingError{Key: c.Key}
	}
	s, err := settings.Lookup(c.Key)
	if err == nil && !s.Lines && lines > 1 {
		err = fmt.Errorf("%s must be one line", c.Key)
	}
	return err
}

// takingBack is one run of [TakeBack].
type takingBack struct {
	d             *lektordir.Dir
	hash          string
	exists        bool              // the feed does
	before, after map[string]string // values by key
}

// read reads the present values.
func (b *takingBack) read(changes []Change) (err error) {
	_, missing := os.Lstat(b.d.Join("src", b.hash))
	b.exists = missing == nil
	keys := []string{keyID, feedfiles.FileURL}
	for _, c := range changes {
		keys = append(keys, c.Key)
	}
	for _, key := range keys {
		if b.before[key], err = valueOf(b.d, b.hash, key); err != nil {
			return err
		}
		b.after[key] = b.before[key]
	}
	return nil
}

// decide sets the values after the changes are taken back. If a subscription that was ended cannot begin again, the
// feed has no use for its settings, and if it was begun by somebody else, they may belong to another server.
func (b *takingBack) decide(changes []Change) []Outcome {
	outcomes := make([]Outcome, len(changes))
	url := Same
	for i, c := range slices.Backward(changes) {
		outcomes[i] = b.restore(c)
		if c.Key == feedfiles.FileURL && c.New == "" {
			url = outcomes[i]
		}
	}
	exists := b.exists || b.after[keyID] != ""
	for i, c := range changes {
		switch {
		case outcomes[i] != Restored:
			continue
		case url == Differs, url == Refused, url == Lost:
			outcomes[i] = url
		case !exists, settings.OfSubscriptions(c.Key) && c.Key != feedfiles.FileURL && b.after[feedfiles.FileURL] == "":
			outcomes[i] = Differs
		default:
			continue
		}
		b.after[c.Key] = b.before[c.Key]
	}
	return outcomes
}

// restore takes back a change in memory.
func (b *takingBack) restore(c Change) Outcome {
	switch now := b.after[c.Key]; {
	case c.Old == c.New:
		return Lost
	case now == c.Old:
		return Same
	case now != c.New:
		return Differs
	case isCommand(c.Key, c.Old) && !(remembersCommand(b.d, c) && b.trusted()):
		return Refused
	}
	b.after[c.Key] = c.Old
	return Restored
}

// trusted reports whether a command of the feed would be run.
func (b *takingBack) trusted() bool {
	if _, err := os.Lstat(feedfiles.FetchArea(b.d, b.hash)); err != nil {
		return feedfiles.Trusted(b.d, "", "") == nil
	}
	return feedfiles.Trusted(b.d, b.hash, "") == nil
}

// write writes the values that differ. The url is written last, since it makes the feed a subscription.
func (b *takingBack) write() error {
	if b.before[keyID] != b.after[keyID] {
		if err := b.create(); err != nil {
			return err
		}
	}
	st, err := schedule.Load(b.d, b.hash)
	if err != nil {
		return err
	}
	for i := range settings.All {
		s := &settings.All[i]
		value, ok := b.after[s.Name]
		if !ok || s.Name == feedfiles.FileURL || value == b.before[s.Name] {
			continue
		}
		if err := setDurably(s, b.d, b.hash, st, value); err != nil {
			return err
		}
	}
	switch value := b.after[feedfiles.FileURL]; {
	case value == b.before[feedfiles.FileURL]:
		return nil
	case value == "":
		return leaveFeed(b.d, b.hash, "")
	default:
		url, origin, _ := strings.Cut(value, "\n")
		return writeURL(st, b.d, b.hash, url, origin)
	}
}

// create creates a feed that was purged.
func (b *takingBack) create() error {
	url, _, _ := strings.Cut(b.after[feedfiles.FileURL], "\n")
	withheld := b.after[feedfiles.FilePrivate]+b.after[feedfiles.FileHeaders]+b.after[feedfiles.FileFilter] != "" ||
		feedfiles.IsPrivateURL(url) ||
		feedfiles.IsPrivateURL(b.after[keyID])
	n := newFeed{d: b.d, s: &Subscription{ID: b.after[keyID], Hash: b.hash}, base: b.d.Join("src", b.hash),
		withheld: withheld}
	if err := n.describe(""); err != nil {
		return err
	}
	if path := filepath.Join(n.base, feedfiles.PathNever); b.after[keyNever] != "" {
		if err := atomicfile.InDir(path, func() error { return atomicfile.Write(path, nil) }); err != nil {
			return err
		}
	}
	return n.sync()
}

// Secret reports whether a value of a [Change] may hold a password, a token or a command.
func Secret(key, value string) bool {
	for line := range strings.SplitSeq(value, "\n") {
		if feedfiles.IsSecret(key, line) || key == feedfiles.FileURL && feedfiles.IsPrivateURL(line) {
			return true
		}
	}
	return false
}

// isCommand reports whether the value of a key is a command.
func isCommand(key, value string) bool {
	return key == feedfiles.FileFilter && value != "" ||
		key == feedfiles.FileURL && strings.HasPrefix(strings.ToLower(strings.TrimSpace(value)), "exec:")
}

// commandsFile has a digest of each of the last commands of feeds that a recorded change has ended, a line each.
const (
	commandsFile = feedfiles.FetchDir + "/commands"
	maxCommands  = 100
)

func (c Change) commandDigest() string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(c.Hash+"\x00"+c.Key+"\x00"+c.Old)))
}

// rememberCommand records the old value of a change as a command of the user. If that fails, undo refuses the command.
func rememberCommand(d *lektordir.Dir, c Change) {
	lines := append(commands(d), c.commandDigest())
	lines = lines[max(0, len(lines)-maxCommands):]
	if schedule.CheckMarkers(d) == nil {
		_ = atomicfile.WritePrivate(d.Join(commandsFile), []byte(strings.Join(lines, "\n")+"\n"))
	}
}

// remembersCommand reports whether the old value of a change was a command of the user.
func remembersCommand(d *lektordir.Dir, c Change) bool {
	return atomicfile.Trusted(d.Join(commandsFile), "") == nil && slices.Contains(commands(d), c.commandDigest())
}

func commands(d *lektordir.Dir) []string {
	data, _ := atomicfile.Read(d.Join(commandsFile), feedfiles.MaxSize)
	return strings.Fields(string(data))
}
