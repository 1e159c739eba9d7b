package sharer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/protocol/feedsync"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
)

// PeerOptions are the options of [Peer].
type PeerOptions struct {
	Common
	Words []string // "add NAME PLACE", "rm NAME" or "ls"
	Print cmdline.PrinterOptions
}

// Peer adds, removes or lists peers.
func Peer(_ context.Context, o PeerOptions, s *cmdline.Streams) error {
	words, do := o.Words, (*run).printPeers
	switch {
	case len(words) == 3 && words[0] == "add":
		if !peerName(words[1]) {
			return cmdline.Usagef("peer add: %q cannot be the name of a peer; use letters, digits and -", words[1])
		}
		do = func(r *run, _ cmdline.PrinterOptions) error { return r.addPeer(words[1], strings.TrimSpace(words[2])) }
	case len(words) == 2 && words[0] == "rm":
		do = func(r *run, _ cmdline.PrinterOptions) error { return r.removePeer(words[1]) }
	case len(words) > 1, len(words) == 1 && words[0] != "ls":
		return &cmdline.UsageError{Message: "peer: use add NAME URL|DIR, rm NAME, or ls",
			Hint: "see lektor-share peer --help"}
	}
	r, err := o.begin(s)
	if err != nil {
		return err
	}
	defer r.end()
	return do(r, o.Print)
}

// peerRow is a peer as it is printed.
type peerRow struct {
	peer
	success time.Time // time of the last successful read
	wrote   time.Time // date of its newest document
	now     time.Time
}

var peerColumns = []cmdline.Column[peerRow]{
	{Name: "name", Get: func(p peerRow) any { return p.name }},
	{Name: "place", Get: func(p peerRow) any { return feedurl.Public(p.place) }},
	{Name: "success", Get: func(p peerRow) any { return p.success }},
	{Name: "age", Get: func(p peerRow) any { return p.since(p.success) }},
	{Name: "wrote", Get: func(p peerRow) any { return p.wrote }},
	{Name: "silent", Get: func(p peerRow) any { return p.since(p.wrote) }},
}

// since returns how long ago t was, or "never".
func (p peerRow) since(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return humanize.ShortDuration(max(0, p.now.Sub(t)))
}

// labelled is the default format of peers.
const labelled = `{{.name}}  {{.place}}  last read: {{if .success}}{{.success}} ({{.age}} ago){{else}}never{{end}}, newest document: {{if .wrote}}{{.wrote}} ({{.silent}} ago){{else}}unknown{{end}}`

func (r *run) printPeers(o cmdline.PrinterOptions) error {
	peers, err := r.peers()
	if err != nil {
		return err
	}
	var rows []peerRow
	for _, p := range peers {
		rec := r.record(p.name)
		rows = append(rows, peerRow{p, parseDate(rec.Get("success")), parseDate(rec.Get("wrote")), r.now})
	}
	return cmdline.Records(r.s.Out, o, labelled, peerColumns,
		func(p *cmdline.Printer[peerRow]) error { return p.PrintAll(rows) })
}

// StatusOptions are the options of [Status].
type StatusOptions struct {
	Common
	Print cmdline.PrinterOptions
}

// Status prints the peers. On standard error it prints the endpoint, waiting items,
// conflicts, and feeds that are not shared.
func Status(ctx context.Context, o StatusOptions, s *cmdline.Streams) error {
	r, err := o.begin(s)
	if err != nil {
		return err
	}
	defer r.end()
	if err := r.printPeers(o.Print); err != nil {
		return err
	}
	l, err := r.local(ctx, r.rep.base)
	if err != nil {
		return err
	}
	s.Report.Info("endpoint %s, target %s", r.me, cmp.Or(r.target, "none"))
	waiting := 0
	for _, n := range r.matchEntries(r.rep.set, r.rep.base, l) {
		waiting += n
	}
	p := &planner{me: r.me, base: r.rep.base, local: l, allow: o.Fetch.AllowPrivate}
	for _, a := range p.plan(r.rep.set) {
		if a.kind != setFlags {
			waiting++
		}
	}
	for _, why := range p.refused {
		s.Report.Info("%s", why)
	}
	peers, err := r.peers()
	if err != nil {
		return err
	}
	r.summary(humanize.Count(len(peers), "peer"), &plan{waiting: waiting})
	for _, hash := range slices.Sorted(maps.Keys(l.withheld)) {
		name := hash
		if sub, err := subscriptions.Read(r.d, hash); err == nil {
			name = sub.Title()
		}
		publishers := 0
		for _, peer := range peers {
			if slices.Contains(strings.Fields(r.record(peer.name).Get("feeds")), hash) {
				publishers++
			}
		}
		text := fmt.Sprintf("not shared: %s, which %s", name, l.withheld[hash])
		if publishers > 0 {
			text += fmt.Sprintf("; %s still publish%s it", humanize.Count(publishers, "peer"),
				map[bool]string{publishers == 1: "es"}[true])
		}
		s.Report.Info("%s", text)
	}
	return r.trouble
}

// conflict is an item in conflict as it is printed, one line for each losing version.
type conflict struct {
	it    *feedsync.Item
	kind  string
	by    string
	when  time.Time
	ours  string
	other string
}

var conflictColumns = []cmdline.Column[conflict]{
	{Name: "item", Get: func(c conflict) any { return c.it.ID }},
	{Name: "kind", Get: func(c conflict) any { return c.kind }},
	{Name: "title", Get: func(c conflict) any { return label(c.it) }},
	{Name: "peer", Get: func(c conflict) any { return c.by }},
	{Name: "when", Get: func(c conflict) any { return c.when }},
	{Name: "ours", Get: func(c conflict) any { return c.ours }},
	{Name: "theirs", Get: func(c conflict) any { return c.other }},
}

// describeItem describes the state of an item in words.
func describeItem(t *folders, it *feedsync.Item) string {
	switch _, _, flag, state := splitState(it.ID); {
	case state && it.Deleted:
		return "not " + wordOf(flag)
	case state:
		return wordOf(flag)
	case it.Deleted:
		return "deleted"
	}
	m := meaningOf(it)
	text := cmp.Or(m.alias, it.Value("", "text"), label(it))
	if path := t.path(it.Parent); path != "" {
		text += " in " + path
	}
	if len(m.categories) > 0 {
		text += ", " + strings.Join(m.categories, ", ")
	}
	return text
}

// ConflictsOptions are the options of [Conflicts].
type ConflictsOptions struct {
	Common
	Print cmdline.PrinterOptions
}

// Conflicts lists the items in conflict.
func Conflicts(_ context.Context, o ConflictsOptions, s *cmdline.Streams) error {
	r, err := o.begin(s)
	if err != nil {
		return err
	}
	defer r.end()
	return cmdline.Records(s.Out, o.Print, "tsv", conflictColumns, func(p *cmdline.Printer[conflict]) error {
		return p.PrintAll(r.rep.set.conflicts())
	})
}

func (s *itemSet) conflicts() (out []conflict) {
	t := foldersOf(s.subs)
	for _, it := range s.inConflict() {
		kind := "subscription"
		if s.subs.Item(it.ID) == nil {
			kind = "state"
		} else if isFolder(it) {
			kind = "folder"
		}
		c := conflict{it: it, kind: kind, ours: describeItem(t, it)}
		for _, k := range it.Conflicts {
			head := k.Head()
			if c.by, c.when, c.other = head.By, head.When, "deleted"; k.Content != nil {
				c.other = describeItem(t, k)
			}
			out = append(out, c)
		}
		if it.Conflict && len(it.Conflicts) == 0 {
			out = append(out, c)
		}
		if slices.Contains(t.cycle, it.ID) {
			c.by, c.when, c.other = "", time.Time{}, "within itself; move one of the folders"
			out = append(out, c)
		}
	}
	return out
}

// ResolveOptions are the options of [Resolve].
type ResolveOptions struct {
	Common
	Items       []string // ids; "-" reads them from standard input, one a line
	All         bool
	Which, Peer string
	DryRun      bool
}

// Resolve settles conflicts and applies the result. The next sync publishes it.
func Resolve(ctx context.Context, o ResolveOptions, s *cmdline.Streams) error {
	if o.Which != "ours" && o.Which != "theirs" {
		return cmdline.Usagef("resolve: use ours or theirs, not %q", o.Which)
	}
	// Read all names before taking the lock: the program that writes them into the pipe may
	// be another lektor-share, which holds the lock.
	names, failed, err := entrystore.Named(ctx, o.Items, false, s, func(line string) (string, error) {
		id, _, _ := strings.Cut(line, "\t") // a line of "conflicts" begins with the id
		return id, nil
	})
	if failed || err != nil {
		return cmp.Or(err, errReported)
	}
	r, l, err := o.openRecordingEdits(ctx, false, s)
	if err != nil {
		return err
	}
	defer r.end()
	items, err := r.rep.set.named(names, o.All)
	if err != nil {
		return err
	}
	bad := false
	for _, it := range items {
		next, err := r.rep.set.settled(it, o.Which, o.Peer)
		switch {
		case err != nil && len(items) == 1:
			return err
		case err != nil:
			s.Report.Print(err)
			bad = true
		case o.DryRun:
			s.Report.Info("would settle %s: %s", it.ID, label(it))
		case r.rep.set.subs.Item(it.ID) == nil:
			r.rep.set.put(feedsync.RSS, next)
		default:
			r.rep.set.put(feedsync.OPML, next)
		}
	}
	if !o.DryRun {
		err = r.applyNow(ctx, l, false)
	}
	if err == nil && bad {
		return errReported
	}
	return err
}

// named returns the items in conflict that the user names, each by its id or a unique
// prefix of it, or all.
func (s *itemSet) named(names []string, all bool) ([]*feedsync.Item, error) {
	items := slices.DeleteFunc(s.inConflict(), func(it *feedsync.Item) bool { return !it.Conflict })
	if all {
		return items, nil
	}
	slices.SortFunc(items, func(a, b *feedsync.Item) int { return strings.Compare(a.ID, b.ID) })
	var out []*feedsync.Item
	for _, name := range names {
		i, exact := slices.BinarySearchFunc(items, name,
			func(it *feedsync.Item, name string) int { return strings.Compare(it.ID, name) })
		found := 0
		for i+found < len(items) && strings.HasPrefix(items[i+found].ID, name) {
			found++
		}
		switch {
		case found == 0, name == "":
			return nil, cmdline.Hint(fmt.Errorf("no item %s is in conflict", name),
				"to list the conflicts: lektor-share conflicts")
		case found > 1 && !exact:
			return nil, fmt.Errorf("%d items in conflict begin with %s", found, name)
		}
		out = append(out, items[i])
	}
	return out, nil
}

// settled returns the item with its conflict settled.
func (s *itemSet) settled(it *feedsync.Item, which, peer string) (*feedsync.Item, error) {
	winner, err := it, error(nil)
	if which == "theirs" {
		winner, err = loser(it, peer)
	}
	if err != nil {
		return nil, err
	}
	return s.edited(it.ID, it, winner.Deleted, winner.Content, winner.Parent)
}

// loser returns the losing version of an item by an endpoint.
func loser(it *feedsync.Item, peer string) (*feedsync.Item, error) {
	var found []*feedsync.Item
	var names []string
	for _, c := range it.Conflicts {
		by := c.Head().By
		names = append(names, cmp.Or(by, "(nobody)"))
		if strings.HasPrefix(by, peer) {
			found = append(found, c)
		}
	}
	switch {
	case len(it.Conflicts) == 0:
		return nil, fmt.Errorf("item %s: its conflict has no other version; only ours is possible", it.ID)
	case len(found) == 0:
		return nil, fmt.Errorf("item %s: it has no version by %s, only by %s", it.ID, peer, strings.Join(names, ", "))
	case len(found) > 1:
		return nil, cmdline.Hint(fmt.Errorf("item %s has several other versions", it.ID), "choose one of: %s",
			strings.Join(names, ", "))
	case found[0].Content == nil:
		return nil, fmt.Errorf("item %s: its conflict by %s has no content", it.ID,
			cmp.Or(found[0].Head().By, "nobody"))
	}
	return found[0], nil
}
