package viewer

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/external"
	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/lektordir"
)

// OpenOptions are the options of [Open] and [Play].
type OpenOptions struct {
	session.Common
	session.Names
	// Link is the number of a link in the content, Enclosure that of an enclosure, and Comments
	// means the page of comments. If none is set, Open opens the entry's page.
	Link, Enclosure int
	Comments        bool
	Page            bool // Play passes the entry's page to the player
	Keep            bool // do not mark the entry as read
}

// Open opens a URL of each entry in the user's browser, and marks the entry as read if the
// browser did not fail.
func Open(ctx context.Context, o OpenOptions, s *cmdline.Streams) error {
	return o.hand(ctx, s, "open", external.Browser, func(r *entrystore.Record) (string, error) {
		e := r.Get(lektordir.FieldID | lektordir.FieldLink | lektordir.FieldComments | lektordir.FieldEnclosures)
		switch {
		case o.Link > 0:
			links := r.Document(0).Links
			if o.Link > len(links) {
				return "", fmt.Errorf("the entry has %s", count(len(links), "link"))
			}
			return links[o.Link-1], nil
		case o.Enclosure > 0:
			return enclosure(e, o.Enclosure)
		case o.Comments && e.Comments == "":
			return "", errors.New("the entry has no page of comments")
		case o.Comments:
			return e.Comments, nil
		}
		return PageOf(r)
	})
}

// PageOf returns the URL of an entry's page, or an error if it has none.
func PageOf(r *entrystore.Record) (string, error) {
	if u := r.URL(); u != "" {
		return u, nil
	}
	return "", errors.New("the entry has no link")
}

// Play plays an enclosure of each entry in the user's player, and marks the entry as read if
// the player did not fail.
func Play(ctx context.Context, o OpenOptions, s *cmdline.Streams) error {
	return o.hand(ctx, s, "play", external.Player, func(r *entrystore.Record) (string, error) {
		e := r.Get(lektordir.FieldID | lektordir.FieldLink | lektordir.FieldEnclosures)
		switch {
		case o.Page:
			return PageOf(r)
		case o.Enclosure > 0:
			return enclosure(e, o.Enclosure)
		}
		if u := playable(e.Enclosures); u != "" {
			return u, nil
		}
		if u := r.URL(); feedurl.IsVideo(u) {
			return u, nil
		}
		return "", cmdline.Hint(errors.New("the entry has nothing to play"),
			"try --page, which passes its page to the player (mpv finds videos in pages), or --enclosure N for an enclosure of any type")
	})
}

// playable returns the URL of the first enclosure of audio or video, else of the first whose
// type is unknown, else "".
func playable(list []lektordir.Enclosure) string {
	unknown := ""
	for _, e := range list {
		switch typ := query.EnclosureType(e); {
		case strings.HasPrefix(typ, "audio"), strings.HasPrefix(typ, "video"), typ == "application/ogg":
			return e.URL
		case typ == "" && unknown == "":
			unknown = e.URL
		}
	}
	return unknown
}

// enclosure returns the URL of an enclosure by its number, from 1.
func enclosure(e *lektordir.Entry, n int) (string, error) {
	if n > len(e.Enclosures) {
		return "", fmt.Errorf("the entry has %s", count(len(e.Enclosures), "enclosure"))
	}
	return e.Enclosures[n-1].URL, nil
}

// count returns "no link", "1 link", "2 links" and so on.
func count(n int, what string) string {
	if n == 0 {
		return "no " + what
	}
	return humanize.Count(n, what)
}

// hand passes a URL of each named entry to a program, one after the other.
func (o OpenOptions) hand(ctx context.Context, s *cmdline.Streams, name string, h *external.Helper,
	pick func(*entrystore.Record) (string, error)) error {
	v, err := openUndoable(name, o.Common, nil, cmdline.PrinterOptions{}, s)
	if err != nil {
		return err
	}
	// A missing program is reported once, not for each entry.
	if _, err := h.Find(); err != nil {
		return err
	}
	defer v.mover.Close()
	for r := range v.Named(ctx, o.Names, s.Report.Print) {
		named := r.Ref.Path()
		err := r.Read(lektordir.Obligatory)
		if err == nil {
			var u string
			if u, err = pick(r); err == nil {
				err = h.HandOver(ctx, v.Store, r, u, func(cmd *exec.Cmd) {
					if s.InIsTerminal() {
						cmd.Stdin = s.InFile()
					}
				})
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", named, err)
			}
		}
		switch {
		case ctx.Err() != nil:
		case err != nil:
			s.Report.Print(err)
		default:
			v.wasShown([]*entrystore.Record{r}, !o.Keep)
		}
	}
	return context.Cause(ctx)
}

// BookmarkOptions are the options of [Bookmark].
type BookmarkOptions struct {
	session.Common
	session.Names
}

// Bookmark runs the user's command for bookmarks for each entry. It marks nothing.
func Bookmark(ctx context.Context, o BookmarkOptions, s *cmdline.Streams) error {
	argv, err := external.Bookmarker()
	if err != nil {
		return err
	}
	v, err := o.Open(nil, cmdline.PrinterOptions{}, s)
	if err != nil {
		return err
	}
	for r := range v.Named(ctx, o.Names, s.Report.Print) {
		named := r.Ref.Path()
		err := r.Read(lektordir.Obligatory)
		if err == nil {
			if _, err = PageOf(r); err == nil {
				err = argv.Run(ctx, v.Store, r, nil)
			} else {
				err = fmt.Errorf("%s: %w", named, err)
			}
		}
		if err != nil && ctx.Err() == nil {
			s.Report.Print(err)
		}
	}
	return context.Cause(ctx)
}
