package sharer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/feedsync"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/units"
)

// PeerOptions are those of the commands on peers.
type PeerOptions struct {
	Common
	Words       []string // of [Peer]
	Name, Place string
	Print       command.PrinterOptions
}

// AddPeer makes another endpoint one that is read.
func AddPeer(_ context.Context, o PeerOptions, s *command.Streams) error {
	if !peerName(o.Name) {
		return command.Usagef("peer add: %q cannot be the name of a peer; letters, digits and - can", o.Name)
	}
	h, err := o.begin(s)
	if err != nil {
		return err
	}
	defer h.end()
	place := strings.TrimSpace(o.Place)
	switch {
	case isURL(place):
		if fetch.Public(place) != place {
			return command.Hint(errors.New("a peer's URL has no user and password"), "the headers of the target are sent to its server: %s", h.path(headersFile))
		}
	case strings.Contains(place, "://") || place == "":
		return command.Usagef("peer add: %q is neither a directory nor an http or https URL", fetch.Public(place))
	default:
		if place, err = filepath.Abs(place); err != nil {
			return err
		}
	}
	return h.line(place, peersDir, o.Name)
}

// RemovePeer ends that an endpoint is read. What came of it stays.
func RemovePeer(_ context.Context, o PeerOptions, s *command.Streams) error {
	h, err := o.begin(s)
	if err != nil {
		return err
	}
	defer h.end()
	if !peerName(o.Name) || !atomicfile.Exists(h.path(peersDir, o.Name)) {
		return command.Hint(fmt.Errorf("there is no peer %s that was added", o.Name), "lektor-share peer ls; one in the target goes with its directory there")
	}
	return errors.Join(atomicfile.Remove(h.path(peersDir, o.Name)), os.RemoveAll(h.path(readDir, o.Name)))
}

// shown is a peer as it is printed.
type shown struct {
	peer
	success time.Time
	now     time.Time
}

var peerColumns = []command.Column[shown]{
	{Name: "name", Get: func(p shown) any { return p.name }},
	{Name: "place", Get: func(p shown) any { return fetch.Public(p.place) }},
	{Name: "success", Get: func(p shown) any { return p.success }},
	{Name: "age", Get: func(p shown) any {
		if p.success.IsZero() {
			return "never"
		}
		return units.ShortDuration(p.now.Sub(p.success))
	}},
}

// Peers lists the peers.
func Peers(_ context.Context, o PeerOptions, s *command.Streams) error {
	h, err := o.begin(s)
	if err != nil {
		return err
	}
	defer h.end()
	return h.printPeers(o.Print)
}

func (h *share) printPeers(o command.PrinterOptions) error {
	return command.Records(h.s.Out, o, "tsv", peerColumns, func(p *command.Printer[shown]) error {
		peers, err := h.peers()
		if err != nil {
			return err
		}
		for _, peer := range peers {
			when, _ := feedsync.ParseDate(h.record(peer.name)["success"])
			if err := p.Print(shown{peer, when, h.now}); err != nil {
				return err
			}
		}
		return nil
	})
}

// StatusOptions are those of [Status].
type StatusOptions struct {
	Common
	Print command.PrinterOptions
}

// Status tells of the peers, and on standard error of this endpoint, of what waits, of
// conflicts, and of what is not shared.
func Status(ctx context.Context, o StatusOptions, s *command.Streams) error {
	h, err := o.begin(s)
	if err != nil {
		return err
	}
	defer h.end()
	if err := h.printPeers(o.Print); err != nil {
		return err
	}
	if err := h.look(); err != nil {
		return err
	}
	if err := h.list(ctx); err != nil {
		return err
	}
	s.Report.Info("endpoint %s, target %s", h.me, cmp.Or(h.target, "none"))
	changes, refused := h.plan()
	h.applyStatesCount(ctx)
	h.waiting += len(changes)
	for _, r := range refused {
		s.Report.Info("%s", r)
	}
	peers, err := h.peers()
	if err != nil {
		return err
	}
	h.summary(len(peers))
	for _, hash := range slices.Sorted(maps.Keys(h.local.own)) {
		name := hash
		if sub, err := feeddir.Read(h.d, hash); err == nil {
			name = sub.Title()
		}
		s.Report.Info("not shared: %s, which %s", name, h.local.own[hash])
	}
	return h.trouble
}

// applyStatesCount counts what waits, and changes nothing.
func (h *share) applyStatesCount(ctx context.Context) {
	quiet := *h
	quiet.s = command.NewStreams("", nil, nil, io.Discard)
	if err := quiet.applyStates(ctx, nil, true); err == nil {
		h.waiting = quiet.waiting
	}
}

// conflict is an item in conflict as it is printed: a line for each loser.
type conflict struct {
	it    *feedsync.Item
	kind  string
	by    string
	when  time.Time
	ours  string
	other string
}

var conflictColumns = []command.Column[conflict]{
	{Name: "item", Get: func(c conflict) any { return c.it.ID }},
	{Name: "kind", Get: func(c conflict) any { return c.kind }},
	{Name: "title", Get: func(c conflict) any { return label(c.it) }},
	{Name: "peer", Get: func(c conflict) any { return c.by }},
	{Name: "when", Get: func(c conflict) any { return c.when }},
	{Name: "ours", Get: func(c conflict) any { return c.ours }},
	{Name: "theirs", Get: func(c conflict) any { return c.other }},
}

// say tells in words what an item is.
func say(t *folders, it *feedsync.Item) string {
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

// ConflictsOptions are those of [Conflicts].
type ConflictsOptions struct {
	Common
	Print command.PrinterOptions
}

// Conflicts lists what was edited in two places.
func Conflicts(_ context.Context, o ConflictsOptions, s *command.Streams) error {
	h, err := o.begin(s)
	if err != nil {
		return err
	}
	defer h.end()
	return command.Records(s.Out, o.Print, "tsv", conflictColumns, func(p *command.Printer[conflict]) error {
		return p.PrintAll(h.conflicts())
	})
}

func (h *share) conflicts() (out []conflict) {
	t := h.folders()
	parents := map[string]string{}
	for _, it := range h.subs.Items() {
		parents[it.ID] = it.Parent
	}
	_, circle := feedsync.Parents(parents)
	for doc, it := range h.items(inConflict) {
		kind := "subscription"
		if doc == set(h.states) {
			kind = "state"
		} else if isFolder(it) {
			kind = "folder"
		}
		c := conflict{it: it, kind: kind, ours: say(t, it)}
		for _, k := range it.Conflicts {
			c.by, c.when, c.other = k.By, k.When, "deleted"
			if loser, err := k.Loser(it.ID); err == nil {
				c.other = say(t, loser)
			}
			out = append(out, c)
		}
		if it.Conflict && len(it.Conflicts) == 0 {
			out = append(out, c)
		}
		if slices.Contains(circle, it.ID) {
			c.by, c.when, c.other = "", time.Time{}, "within itself; move one of the folders"
			out = append(out, c)
		}
	}
	return out
}

// ResolveOptions are those of [Resolve].
type ResolveOptions struct {
	Common
	Item, Which, Peer string
	DryRun            bool
}

// Resolve settles a conflict, and applies what was decided. The next sync tells others.
func Resolve(ctx context.Context, o ResolveOptions, s *command.Streams) error {
	if o.Which != "ours" && o.Which != "theirs" {
		return command.Usagef("resolve: %q is neither ours nor theirs", o.Which)
	}
	h, err := o.noted(ctx, s)
	if err != nil {
		return err
	}
	defer h.end()
	doc, it, err := h.inConflict(o.Item)
	if err != nil {
		return err
	}
	var content []byte
	deleted, parent := it.Deleted, it.Parent
	if o.Which == "theirs" {
		loser, err := h.loser(it, o.Peer)
		if err != nil {
			return err
		}
		content, deleted, parent = loser.Content(), loser.Deleted, loser.Parent
	}
	if o.DryRun {
		s.Report.Info("would settle %s: %s", it.ID, label(it))
		return nil
	}
	next, err := it.Resolve(content, deleted, h.moment(it), h.me)
	if err != nil {
		return err
	}
	next.Parent = parent
	h.put(doc, next)
	if err := h.save(); err != nil {
		return err
	}
	bad := h.follow(ctx, nil, false, false)
	return errors.Join(h.trouble, bad)
}

// inConflict finds the item that the user names, by its id or the beginning of it that
// one alone in conflict has.
func (h *share) inConflict(name string) (set, *feedsync.Item, error) {
	var doc set
	var found []*feedsync.Item
	for d, it := range h.items(inConflict) {
		switch {
		case !it.Conflict:
		case it.ID == name:
			return d, it, nil
		case name != "" && strings.HasPrefix(it.ID, name):
			doc, found = d, append(found, it)
		}
	}
	switch len(found) {
	case 0:
		return nil, nil, command.Hint(fmt.Errorf("no item %s is in conflict", name), "lektor-share conflicts lists those that are")
	case 1:
		return doc, found[0], nil
	}
	return nil, nil, fmt.Errorf("%d items in conflict begin with %s", len(found), name)
}

// loser gives what an endpoint made of an item and lost.
func (h *share) loser(it *feedsync.Item, peer string) (*feedsync.Item, error) {
	var found []*feedsync.Conflict
	var names []string
	for _, c := range it.Conflicts {
		names = append(names, cmp.Or(c.By, "(nobody)"))
		if peer == "" || c.By == peer || strings.HasPrefix(c.By, peer) {
			found = append(found, c)
		}
	}
	switch {
	case len(it.Conflicts) == 0:
		return nil, fmt.Errorf("item %s: its conflict has no other content; only ours can be taken", it.ID)
	case len(found) == 0:
		return nil, fmt.Errorf("item %s: no conflict is by %s; there is %s", it.ID, peer, strings.Join(names, ", "))
	case len(found) > 1:
		return nil, command.Hint(fmt.Errorf("item %s has several conflicts", it.ID), "say whose counts: %s", strings.Join(names, ", "))
	}
	return found[0].Loser(it.ID)
}

// Peer is "peer add", "peer rm" or "peer ls".
func Peer(ctx context.Context, o PeerOptions, s *command.Streams) error {
	words := o.Words
	switch {
	case len(words) == 3 && words[0] == "add":
		o.Name, o.Place = words[1], words[2]
		return AddPeer(ctx, o, s)
	case len(words) == 2 && words[0] == "rm":
		o.Name = words[1]
		return RemovePeer(ctx, o, s)
	case len(words) == 0, len(words) == 1 && words[0] == "ls":
		return Peers(ctx, o, s)
	}
	return &command.UsageError{Message: "peer: it is add NAME URL|DIR, rm NAME, or ls", Hint: "see lektor-share peer --help"}
}
