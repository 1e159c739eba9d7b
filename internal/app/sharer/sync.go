package sharer

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/feedsync"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/joined"
	"github.com/lektordir/lektor/internal/lazy"
	"github.com/lektordir/lektor/internal/units"
)

// InitOptions are those of [Init].
type InitOptions struct {
	Common
	Target string // a directory, or an http(s) URL; "" with Renew leaves it
	Name   string // of this machine, for people
	Renew  bool   // another endpoint, with the same set
}

var notInName = lazy.Regexp(`[^A-Za-z0-9-]+`)

// Init makes the lektor-dir an endpoint, and says where it meets others. On a machine
// that has no lektor-dir as yet it makes one: what is in it comes from the others.
func Init(_ context.Context, o InitOptions, s *command.Streams) error {
	if o.Target == "" && !o.Renew {
		return &command.UsageError{Message: "init: no target is given", Hint: "a directory that all your machines have, or the URL of a server that takes PUT"}
	}
	with := command.CreateDir
	if o.Renew {
		with = command.OpenDir // which is to have something to go on with
	}
	h, err := o.open(s, with)
	if err != nil {
		return err
	}
	// Other programs have theirs in etc, too; only what is shared is for the user alone.
	if err := errors.Join(os.MkdirAll(h.d.Join("etc"), 0o777), os.MkdirAll(h.path(), 0o700)); err != nil {
		return err
	}
	if err := h.lockSet(); err != nil {
		return err
	}
	defer h.end()
	old, err := h.setting(endpointFile)
	if err != nil {
		return err
	}
	target, headers := strings.TrimSpace(o.Target), ""
	if isURL(target) {
		u, err := url.Parse(target)
		if err != nil {
			return err
		}
		if u.RawQuery != "" || u.Fragment != "" {
			return &command.UsageError{Message: "init: the URL of a directory has no query", Hint: "tokens belong into " + h.path(headersFile)}
		}
		if u.User != nil {
			// No password stands in a file that is not for it.
			password, _ := u.User.Password()
			headers = "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)) + "\n"
			target = fetch.Public(target)
		}
	} else if target != "" {
		if strings.Contains(target, "://") {
			return &command.UsageError{Message: "init: " + fetch.Public(target) + " is neither a directory nor an http or https URL"}
		}
		if target, err = filepath.Abs(target); err != nil {
			return err
		}
		if strings.ContainsAny(target, "\n\r") {
			return &command.UsageError{Message: "init: the name of the directory has a newline"}
		}
		if err := makeDir(target); err != nil {
			return err
		}
	}
	name := strings.Trim(notInName().ReplaceAllString(o.Name, "-"), "-")
	if h.me = old; old == "" || o.Renew {
		if name == "" {
			name, _, _ = strings.Cut(old, "-")
		}
		random, err := h.random(8)
		if err != nil {
			return err
		}
		h.me = strings.TrimPrefix(strings.ToLower(name[:min(len(name), 40)])+"-"+random, "-")
	}
	if headers != "" {
		if _, err := private(h.path(headersFile), []byte(headers)); err != nil {
			return err
		}
	}
	if target != "" {
		if err := h.line(target, targetFile); err != nil {
			return err
		}
	}
	if err := h.line(h.me, endpointFile); err != nil {
		return err
	}
	where := target
	if where == "" {
		where, _ = atomicfile.Line(h.path(targetFile))
	}
	s.Report.Info("this lektor-dir is the endpoint %s, and publishes below %s; now: lektor-share sync", h.me, where)
	return nil
}

// SyncOptions are those of [Sync].
type SyncOptions struct {
	Common
	Yes    bool // end as many subscriptions as may be
	DryRun bool
	Quiet  bool
}

// Sync notes what was done here, merges what others publish, makes the lektor-dir
// follow, and publishes.
func Sync(ctx context.Context, o SyncOptions, s *command.Streams) error {
	h, err := o.begin(s)
	if err != nil {
		return err
	}
	defer h.end()
	if err := h.note(ctx); err != nil {
		return err
	}
	if h.lost {
		if err := h.recover(ctx, o.DryRun); err != nil {
			return err
		}
	}
	all, changed, failed, err := h.readPeers(ctx, o.Quiet)
	if err != nil {
		return err
	}
	if err := h.overwritten(ctx); err != nil {
		return err
	}
	if h.changed.subs {
		h.subs.Arrange()
	}
	if !o.DryRun {
		h.sweep()
		if err := h.save(); err != nil {
			return err
		}
		for _, n := range all {
			n.record["success"] = h.success(n)
			if err := h.writeRecord(n.peer.name, n.record); err != nil {
				return err
			}
		}
		if err := h.deferred(); err != nil {
			return err
		}
	}
	bad := h.follow(ctx, changed, o.Yes, o.DryRun)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	bad = errors.Join(h.trouble, bad)
	if !o.DryRun {
		if err := h.publish(ctx); err != nil {
			if !isURL(h.target) || lasting(err) {
				return errors.Join(bad, err)
			}
			s.Report.Print(err)
			failed++
		}
	}
	if !o.Quiet {
		whole := slices.DeleteFunc(all, func(n *news) bool { return n.broken })
		h.summary(len(whole))
	}
	switch {
	case bad != nil:
		return bad
	case failed > 0:
		return remote
	}
	return nil
}

// sweep removes what runs that were killed left of documents, which nobody else writes:
// in a directory that is replicated it would be on all machines for ever.
func (h *share) sweep() {
	dirs := []string{h.path()}
	if h.target != "" && !isURL(h.target) {
		dirs = append(dirs, filepath.Join(h.target, h.me))
	}
	for _, dir := range dirs {
		names, _ := os.ReadDir(dir)
		for _, n := range names {
			if atomicfile.Temporary(n.Name()) {
				h.change()
				_ = os.Remove(filepath.Join(dir, n.Name())) // the next run tries again
			}
		}
	}
}

// recover reads what this endpoint has published, when a document of the set is lost, and
// forgets what was read of others: of them, too, all is to be read. What is deleted, here
// or there, would come back otherwise.
func (h *share) recover(ctx context.Context, dryRun bool) error {
	place := h.place()
	n, err := h.fetchPeer(ctx, peer{name: h.me, place: place})
	if n == nil {
		return command.Hint(fmt.Errorf("a part of the set is gone from %s, and what was published of it cannot be read: %w", h.path(), err),
			"mount %s; or, to do without: rm %s", place, h.path(publishedFile))
	}
	for _, e := range joined.Errors(err) {
		h.s.Report.Print(fmt.Errorf("%s: %w", h.me, e))
	}
	h.merge(n, map[string]bool{})
	if dryRun {
		return nil
	}
	h.change()
	return os.RemoveAll(h.path(readDir))
}

// deferred notes which peers are not to be asked for a while.
func (h *share) deferred() error {
	for name, when := range h.leaveAlone {
		r := h.record(name)
		r["after"] = feedsync.FormatDate(when)
		if err := h.writeRecord(name, r); err != nil {
			return err
		}
	}
	return nil
}

// success is when a peer was last read: a date, that stays the same as long as the peer
// publishes nothing new.
func (h *share) success(n *news) string {
	if n.broken || !n.read && n.record["success"] != "" {
		return n.record["success"]
	}
	return feedsync.FormatDate(h.now)
}

// note looks at the lektor-dir, and notes the edits.
func (h *share) note(ctx context.Context) error {
	if err := h.look(); err != nil {
		return err
	}
	if err := h.list(ctx); err != nil {
		return err
	}
	if err := h.noteSubs(); err != nil {
		return err
	}
	return h.noteStates(ctx)
}

// follow makes the lektor-dir what the set says, and remembers it.
func (h *share) follow(ctx context.Context, changed map[string]bool, yes, dryRun bool) error {
	bad := errors.Join(h.applySubs(ctx, yes, dryRun), h.applyStates(ctx, changed, dryRun))
	if dryRun {
		return bad
	}
	return errors.Join(bad, h.remember())
}

func (h *share) summary(peers int) {
	conflicts := 0
	for _, it := range h.items(inConflict) {
		if it.Conflict {
			conflicts++
		}
	}
	text := fmt.Sprintf("%s read", units.Count(peers, "peer"))
	if h.waiting > 0 {
		text += fmt.Sprintf(", %s waiting", units.Count(h.waiting, "item"))
	}
	if conflicts > 0 {
		text += fmt.Sprintf(", %s (see: lektor-share conflicts)", units.Count(conflicts, "conflict"))
	}
	h.s.Report.Info("%s", text)
}

// ApplyOptions are those of [Apply].
type ApplyOptions struct {
	Common
	Yes, DryRun bool
}

// Apply makes the lektor-dir what the set says, and does nothing else: for what was
// fetched since, of which the set knew already.
func Apply(ctx context.Context, o ApplyOptions, s *command.Streams) error {
	h, err := o.noted(ctx, s)
	if err != nil {
		return err
	}
	defer h.end()
	if !o.DryRun {
		if err := h.save(); err != nil {
			return err
		}
	}
	bad := h.follow(ctx, nil, o.Yes, o.DryRun)
	return errors.Join(h.trouble, bad)
}

// PublishOptions are those of [Publish].
type PublishOptions struct {
	Common
	To  string // a directory, or "-" for standard output
	Set string // with "-": subscriptions or state
}

// Publish writes the documents to another place than the target, complete.
func Publish(ctx context.Context, o PublishOptions, s *command.Streams) error {
	name, ok := map[string]string{"": subsFile, "subscriptions": subsFile, "state": completeFile}[o.Set]
	if !ok {
		return command.Usagef("--set %s: it is subscriptions or state", o.Set)
	}
	h, err := o.noted(ctx, s)
	if err != nil {
		return err
	}
	defer h.end()
	h.changed.subs = h.changed.subs || !atomicfile.Exists(h.path(subsFile))
	h.changed.states = h.changed.states || !atomicfile.Exists(h.path(completeFile))
	if err := h.save(); err != nil {
		return err
	}
	if err := errors.Join(h.trouble, h.remember()); err != nil {
		return err
	}
	if o.To != "-" {
		return h.copyOut(filepath.Join(o.To, h.me))
	}
	if name == completeFile {
		states := h.states
		states.frame.SetSharing(&feedsync.Sharing{Until: states.until, Version: feedsync.SpecVersion})
		return states.write(&summed{w: s.Out}, func(string, mark) {})
	}
	_, err = h.subs.WriteTo(s.Out)
	return err
}

// copyOut writes the documents into a directory that is not the target.
func (h *share) copyOut(dir string) error {
	if err := makeDir(dir); err != nil {
		return err
	}
	for _, name := range documents {
		if !atomicfile.Exists(h.path(name)) {
			continue
		}
		if err := copyFile(h.path(name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
