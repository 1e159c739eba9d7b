package viewer

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/external"
	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// OpenOptions are the options of [Open] and [Play].
type OpenOptions struct {
	session.Common
	session.Names
	// Of the entry's URLs that of its page, or one of these: a link of the content by
	// its number, an enclosure by its number, the page of comments.
	Link, Enclosure int
	Comments        bool
	Page            bool // of Play: the page, in which a player may find something
	Keep            bool // leave it unread
}

// Open hands the URL of each entry to the user's browser, and marks it as read when the
// browser was content.
func Open(ctx context.Context, o OpenOptions, s *command.Streams) error {
	return o.hand(ctx, s, "open", external.Browser, func(r *entries.Record) (string, error) {
		e := r.Get(lektordir.FieldID | lektordir.FieldLink | lektordir.FieldComments | lektordir.FieldEnclosures)
		switch {
		case o.Link > 0:
			links := r.Document(0).Links
			if o.Link > len(links) {
				return "", fmt.Errorf("it has %s", count(len(links), "link"))
			}
			return links[o.Link-1], nil
		case o.Enclosure > 0:
			return enclosure(e, o.Enclosure)
		case o.Comments && e.Comments == "":
			return "", errors.New("it has no page of comments")
		case o.Comments:
			return e.Comments, nil
		}
		return PageOf(r)
	})
}

// PageOf returns the URL of an entry's page.
func PageOf(r *entries.Record) (string, error) {
	if u := r.URL(); u != "" {
		return u, nil
	}
	return "", errors.New("it has no link")
}

// Play hands an enclosure of each entry to the user's player, and marks the entry as
// read when it was played.
func Play(ctx context.Context, o OpenOptions, s *command.Streams) error {
	return o.hand(ctx, s, "play", external.Player, func(r *entries.Record) (string, error) {
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
		return "", command.Hint(errors.New("it has nothing to play"), "--page hands its page to the player, in which mpv may find a video; --enclosure N takes any")
	})
}

// playable gives the URL of the first enclosure that a player is for, "" for none. One of
// which nothing is known may be.
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

// enclosure gives the URL of an enclosure by its number.
func enclosure(e *lektordir.Entry, n int) (string, error) {
	if n > len(e.Enclosures) {
		return "", fmt.Errorf("it has %s", count(len(e.Enclosures), "enclosure"))
	}
	return e.Enclosures[n-1].URL, nil
}

// count tells a number of things, of which there may be none.
func count(n int, what string) string {
	if n == 0 {
		return "no " + what
	}
	return units.Count(n, what)
}

// hand hands a URL of each entry that is named to a program, one after the other.
func (o OpenOptions) hand(ctx context.Context, s *command.Streams, name string, h *external.Helper, pick func(*entries.Record) (string, error)) error {
	v, err := moving(name, o.Common, nil, command.PrinterOptions{}, s)
	if err != nil {
		return err
	}
	// What is missing for all is told once, and first.
	if _, err := h.Find(); err != nil {
		return err
	}
	defer v.mover.Close()
	var shown []*entries.Record
	for ref, err := range v.Named(o.Names) {
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			s.Report.Print(err)
			continue
		}
		r := v.Record(ref)
		if err = r.Read(lektordir.Obligatory); err == nil {
			var u string
			if u, err = pick(r); err == nil {
				err = h.HandOver(ctx, v.Store, r, u, func(cmd *exec.Cmd) {
					if s.InIsTerminal() {
						cmd.Stdin = s.InFile()
					}
				})
			}
			if err != nil && ctx.Err() == nil {
				hint := (*command.HintError)(nil)
				if err = fmt.Errorf("%s: %w", ref.Path(), err); errors.As(err, &hint) {
					err = command.Hint(err, "%s", hint.Hint)
				}
			}
		}
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			s.Report.Print(err)
			continue
		}
		shown = append(shown, r)
		if err := v.wasShown([]*entries.Record{r}, !o.Keep); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
