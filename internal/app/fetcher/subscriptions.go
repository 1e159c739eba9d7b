package fetcher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/read/undo"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// RemoveOptions are the options of [Remove].
type RemoveOptions struct {
	Common
	Feeds         []string
	Nul           bool // the items that "-" reads end with NUL
	Purge, DryRun bool
}

// Remove unsubscribes from feeds. With Purge it also removes their entries.
func Remove(ctx context.Context, o RemoveOptions, s *cmdline.Streams) error {
	d, err := o.open()
	if err != nil {
		return err
	}
	r, err := o.runner(s, d, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	defer r.recording(s, "rm")()
	done, remove := "unsubscribed", func(hash, _ string) error {
		return subscriptions.Remove(r.Writer, d, hash,
			r.record)
	}
	switch {
	case o.Purge && o.DryRun:
		done = "would be removed with its entries"
	case o.DryRun:
		done = "would be unsubscribed from"
	case o.Purge:
		r.Recover(ctx) // finish an interrupted purge
		done = "removed with its entries"
		remove = func(hash, title string) error { return r.purge(ctx, hash, title) }
	}
	// The entries of a feed can be purged after it was unsubscribed from.
	find := &subscriptions.Finder{Dir: d, All: o.Purge}
	for name, err := range cmdline.ReadArgs(o.Feeds, s.In, o.Nul) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var hash, title string
		if err == nil {
			hash, err = find.Find(name)
		}
		if err == nil {
			title = hash
			if f, _ := d.ReadFeed(hash); f != nil {
				title = f.Title()
			}
			if !o.DryRun {
				err = remove(hash, title)
			}
		}
		if err != nil {
			s.Report.Print(entrystore.FeedHint(err))
			continue
		}
		s.Report.Info("%s: %s (%s)", name, done, title)
	}
	return nil
}

// purge removes a feed with its entries. If another process holds the feed, purge reports that and
// waits.
func (r *Runner) purge(ctx context.Context, hash, title string) error {
	t, err := r.Writer.Begin(hash)
	if commit.IsBusy(err) {
		r.report.Info("%s: another process has locked the feed; waiting for it", title)
	} else if err == nil {
		t.Close()
	}
	return subscriptions.Purge(ctx, r.Writer, r.Dir, hash, r.record)
}

// SetOptions are the options of [Set].
type SetOptions struct {
	Common
	Feed          string
	Key           string   // "": all settings; "-": those on standard input
	Values        []string // lines of the new value; none: show the value
	Unset, DryRun bool
	Force         bool // allow an interval shorter than [settings.MinInterval], and with "-" every value
	Raw           bool // print values as they are, even if they could harm a terminal
	Undo          bool // take back the changes on standard input, lines of a journal of undo
}

// Set changes, removes or prints a setting of a feed, or prints all settings.
func Set(ctx context.Context, o SetOptions, s *cmdline.Streams) error {
	d, err := o.open()
	if err != nil {
		return err
	}
	switch {
	case o.Undo:
		return o.takeBack(ctx, d, s)
	case o.Key == "-":
		return o.restore(ctx, d, s)
	}
	hash, err := subscriptions.FindAny(d, o.Feed)
	if err == nil && (o.Unset || len(o.Values) > 0) {
		err = o.allowed(d, hash, o.Key)
	}
	switch {
	case err != nil:
		return entrystore.FeedHint(err)
	case o.Key == "":
		for _, key := range settings.Names {
			err = errors.Join(err, o.print(s, d, hash, key, key+"\t"))
		}
		return err
	case !o.Unset && len(o.Values) == 0:
		return settingError(o.print(s, d, hash, o.Key, ""))
	}
	value := strings.Join(o.Values, "\n")
	if !o.Unset {
		if o.Key == "url" {
			value, err = source(value)
		}
		if err == nil {
			err = checkSetting(o.Key, value, o.Force)
		}
		if err != nil {
			return usage(err)
		}
	}
	if o.DryRun {
		return nil
	}
	r, err := o.runner(s, d, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	defer r.recording(s, "set")()
	if o.Unset {
		err = subscriptions.Unset(r.Writer, d, hash, o.Key, r.record)
	} else {
		err = subscriptions.Restore(r.Writer, d, hash, o.Key, value, r.record)
		if err == nil && o.Key == "fulltext" && value == "on" {
			warnFullText(s)
		}
	}
	return settingError(entrystore.FeedHint(err))
}

// allowed returns an error if a setting would have no effect, as the feed is not subscribed to.
func (o SetOptions) allowed(d *lektordir.Dir, hash, key string) error {
	if settings.OfSubscriptions(key) && !feedfiles.Subscribed(d, hash) {
		return &subscriptions.NotSubscribedError{Name: o.Feed, Setting: key}
	}
	return nil
}

// restore sets the settings on standard input, in the form in which Set prints them. The url is
// set after the others: it makes a feed a subscription again that the user has left.
func (o SetOptions) restore(ctx context.Context, d *lektordir.Dir, s *cmdline.Streams) error {
	text, err := s.ReadFile(ctx, "-", 1<<20)
	if err != nil {
		return err
	}
	lines := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		key, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "\t")
		if !ok {
			return fmt.Errorf("standard input: %q has no tab after the name of a setting", key)
		}
		lines[key] = append(lines[key], value)
	}
	values := map[string]string{}
	for key, all := range lines {
		values[key] = strings.Join(all, "\n")
		err := checkSetting(key, values[key], o.Force)
		if err != nil && (!o.Force || errors.As(err, new(*settings.UnknownSettingError))) {
			return usage(err)
		}
	}
	hash, err := subscriptions.FindAny(d, o.Feed)
	for key := range values {
		if err == nil && values["url"] == "" {
			err = o.allowed(d, hash, key)
		}
	}
	if err != nil || o.DryRun {
		return entrystore.FeedHint(err)
	}
	r, err := o.runner(s, d, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	defer r.recording(s, "set")()
	url := values["url"]
	for _, key := range settings.Names {
		if values[key] == "" || url != "" && (key == "url" || key == "origin") {
			continue
		}
		if err := subscriptions.Restore(r.Writer, d, hash, key, values[key], r.record); err != nil {
			return entrystore.FeedHint(err)
		}
	}
	if url == "" {
		return nil
	}
	return entrystore.FeedHint(subscriptions.RestoreURL(r.Writer, d, hash, url, values["origin"], r.record))
}

// maxChanges limits the size of the changes that are taken back, those of a journal.
const maxChanges = 64 << 20

// takeBack takes back the changes on standard input. For each it prints the outcome, the hash of the feed and the
// key, with tabs between them. An error of a feed does not keep others from being taken back.
func (o SetOptions) takeBack(ctx context.Context, d *lektordir.Dir, s *cmdline.Streams) error {
	text, err := s.ReadFile(ctx, "-", maxChanges)
	if err != nil {
		return err
	}
	var hashes []string
	changes := map[string][]subscriptions.Change{}
	for line := range strings.Lines(string(text)) {
		c, ok := undo.ParseChange(strings.TrimSuffix(line, "\n"))
		if !ok {
			return errors.New("standard input: a line is not a change of a setting")
		}
		if changes[c.Hash] == nil {
			hashes = append(hashes, c.Hash)
		}
		changes[c.Hash] = append(changes[c.Hash], c)
	}
	r, err := o.runner(s, d, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	for _, hash := range slices.Backward(hashes) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		outcomes, err := subscriptions.TakeBack(r.Writer, d, hash, changes[hash], o.DryRun)
		if err != nil {
			s.Report.Print(err)
			continue
		}
		for i, c := range changes[hash] {
			fmt.Fprintf(s.Out, "%s\t%s\t%s\n", outcomes[i], hash, c.Key)
		}
	}
	return nil
}

// print prints the lines of a setting, each after prefix.
func (o SetOptions) print(s *cmdline.Streams, d *lektordir.Dir, hash, key, prefix string) error {
	v, err := settings.Get(d, hash, key)
	for line := range strings.SplitSeq(v, "\n") {
		switch {
		case o.Raw && v != "":
			fmt.Fprintf(s.Out, "%s%s\n", prefix, line)
		case line != "":
			fmt.Fprintf(s.Out, "%s%s\n", prefix, termsafe.Line(line))
		}
	}
	return err
}

// checkSetting returns an error if a value is not valid. An interval that is too short is valid if
// force is set.
func checkSetting(key, value string, force bool) error {
	err := settings.Check(key, value)
	if short := (*settings.ShortIntervalError)(nil); errors.As(err, &short) {
		if force {
			return nil
		}
		return cmdline.Hint(err, "--force sets it anyway")
	}
	return err
}

// settingError turns the error for an unknown setting into a usage error.
func settingError(err error) error {
	if unknown := (*settings.UnknownSettingError)(nil); errors.As(err, &unknown) {
		return usage(err)
	}
	return err
}

// usage turns an error of a setting into a usage error.
func usage(err error) error {
	u := &cmdline.UsageError{Message: err.Error()}
	var hint *cmdline.HintError
	switch {
	case errors.As(err, &hint):
		u.Hint = hint.Hint
	case errors.As(err, new(*settings.UnknownSettingError)):
		u.Hint = "lektor-fetch set FEED lists the settings of a feed"
	}
	return u
}

// CheckOptions are the options of [Check].
type CheckOptions struct {
	Common
	Repair bool
}

// Check prints the problems of the lektor-dir, one per line. It returns an error if some were not
// repaired.
func Check(ctx context.Context, o CheckOptions, s *cmdline.Streams) error {
	d, err := o.open()
	if err != nil {
		return err
	}
	open, err := openToOthers(d, s)
	if err != nil {
		return err
	}
	problems, err := d.Check(ctx, o.Repair)
	if open {
		found, serr := checkSecrets(d, o.Repair)
		problems, err = append(problems, found...), errors.Join(err, serr)
	}
	remaining, safe := 0, false
	for _, p := range problems {
		printLine(s, p.String())
		if !p.Repaired {
			remaining++
		}
		safe = safe || p.Safe
	}
	if err != nil || remaining == 0 {
		return err
	}
	err = errors.New(humanize.Count(remaining, "problem"))
	if safe && !o.Repair {
		return cmdline.Hint(err, "lektor-fetch check --repair mends what is safe to mend")
	}
	return err
}

// openToOthers reports whether other users may read the lektor-dir. It warns once, as that may be
// intended.
func openToOthers(d *lektordir.Dir, s *cmdline.Streams) (bool, error) {
	fi, err := os.Stat(d.Path())
	if err != nil || fi.Mode().Perm()&0o077 == 0 {
		return false, err
	}
	if subscriptions.RecordOpenWarning(d) {
		s.Report.Warn("other users may read %s; to keep it to yourself: chmod 700 %[1]s", d.Path())
	}
	return true, nil
}

// checkSecrets returns the private addresses, headers and commands of feeds that other users may
// read. If repair is set, it makes them private.
func checkSecrets(d *lektordir.Dir, repair bool) (found []lektordir.Problem, err error) {
	hashes, err := d.FeedHashes()
	for _, hash := range hashes {
		paths, oerr := settings.Exposed(d, hash, repair)
		err = errors.Join(err, oerr)
		for _, path := range paths {
			found = append(found, lektordir.Problem{Path: path, What: "other users may read this private file",
				Safe: true, Repaired: repair && oerr == nil})
		}
	}
	return found, err
}
