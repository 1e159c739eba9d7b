package viewer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// OpenOptions are the options of [Open] and [Play].
type OpenOptions struct {
	Common
	Names
	// Of the entry's URLs that of its page, or one of these: a link of the content by
	// its number, an enclosure by its number, the page of comments.
	Link, Enclosure int
	Comments        bool
	Page            bool // of Play: the page, in which a player may find something
	Keep            bool // leave it unread
}

// schemesFile has the schemes of URLs that the user lets be handed to programs beside
// http and https, one a line.
const schemesFile = "etc/view/schemes"

// helper is a program that a URL is handed to: the variables that may name it, and
// what else is tried.
type helper struct {
	what      string
	variables []string
	several   bool // names with colons between them, of which the first is taken that there is
	others    []string
}

var (
	browser = helper{"browser", []string{"LEKTOR_BROWSER", "BROWSER"}, true, []string{"xdg-open", "x-www-browser", "www-browser", "firefox", "chromium", "w3m", "lynx"}}
	player  = helper{"player", []string{"LEKTOR_PLAYER"}, false, []string{"mpv", "vlc", "mplayer", "ffplay"}}
)

// Open hands the URL of each entry to the user's browser, and marks it as read when the
// browser was content.
func Open(ctx context.Context, o OpenOptions, s *command.Streams) error {
	return o.hand(ctx, s, "open", &browser, func(r *entries.Record) (string, error) {
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
		return pageOf(r)
	})
}

// pageOf gives the URL of an entry's page.
func pageOf(r *entries.Record) (string, error) {
	if u := r.URL(); u != "" {
		return u, nil
	}
	return "", errors.New("it has no link")
}

// Play hands an enclosure of each entry to the user's player, and marks the entry as
// read when it was played.
func Play(ctx context.Context, o OpenOptions, s *command.Streams) error {
	return o.hand(ctx, s, "play", &player, func(r *entries.Record) (string, error) {
		e := r.Get(lektordir.FieldID | lektordir.FieldLink | lektordir.FieldEnclosures)
		switch {
		case o.Page:
			return pageOf(r)
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
func (o OpenOptions) hand(ctx context.Context, s *command.Streams, name string, h *helper, pick func(*entries.Record) (string, error)) error {
	v, err := o.open(nil, command.PrinterOptions{}, s)
	if err != nil {
		return err
	}
	// What is missing for all is told once, and first.
	if _, err := h.find(); err != nil {
		return err
	}
	defer v.moves(name).close()
	var shown []*entries.Record
	for ref, err := range v.named(o.Names) {
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
				err = v.handOver(ctx, h, r, u, func(cmd *exec.Cmd) {
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

// handOver hands a URL of an entry to a helper, whose process set prepares.
func (v *viewer) handOver(ctx context.Context, h *helper, r *entries.Record, url string, set func(*exec.Cmd)) error {
	argv, err := v.command(h, url)
	if err != nil {
		return err
	}
	cmd := v.external(ctx, r, argv...)
	set(cmd)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", argv[0], err)
	}
	return nil
}

// command gives the command of a helper for a URL, if it may be handed to one.
func (v *viewer) command(h *helper, u string) ([]string, error) {
	u, err := v.allowed(u)
	if err != nil {
		return nil, err
	}
	argv, err := h.find()
	if err != nil {
		return nil, err
	}
	return with(argv, u), nil
}

// find gives the command of a helper, without the URL.
func (h *helper) find() ([]string, error) {
	for _, name := range h.variables {
		value := strings.TrimSpace(os.Getenv(name))
		if value == "" {
			continue
		}
		texts := []string{value}
		if h.several {
			texts = strings.Split(value, ":")
		}
		for _, text := range texts {
			argv, err := command.Words(text)
			if err != nil {
				return nil, fmt.Errorf("%s is %s: %w", name, value, err)
			}
			if len(argv) == 0 {
				continue
			}
			if _, err := exec.LookPath(argv[0]); err == nil {
				return argv, nil
			}
		}
		return nil, command.Hint(fmt.Errorf("%s is %s, and there is no such program", name, value), "name a program that is there, with its arguments; no shell reads it")
	}
	others := h.others
	if runtime.GOOS == "darwin" {
		others = append([]string{"open"}, others...) // elsewhere that is something else
	}
	for _, name := range others {
		if _, err := exec.LookPath(name); err == nil {
			return []string{name}, nil
		}
	}
	return nil, command.Hint(fmt.Errorf("there is no %s", h.what), "name one in the variable %s", h.variables[0])
}

// with gives the command for a URL: in the place of %s, or as the last argument.
func with(argv []string, u string) []string {
	argv = slices.Clone(argv)
	found := false
	for i, w := range argv {
		if i > 0 && strings.Contains(w, "%s") {
			argv[i] = strings.ReplaceAll(w, "%s", u)
			found = true
		}
	}
	if !found {
		argv = append(argv, u)
	}
	return argv
}

// allowed gives a URL as it may be handed to a program: one of the web, or of a scheme
// that the user allows. It begins with a letter, so that it is no option, and has no
// character that a script which quotes badly would take for its own.
func (v *viewer) allowed(text string) (string, error) {
	text = strings.TrimSpace(text)
	u, err := url.Parse(text)
	if err != nil {
		return "", fmt.Errorf("%s is no URL", termsafe.Brief(text))
	}
	switch scheme := strings.ToLower(u.Scheme); {
	case scheme == "http" || scheme == "https":
		if u.Host == "" {
			return "", fmt.Errorf("%s is no URL", termsafe.Brief(text))
		}
	case scheme == "":
		return "", fmt.Errorf("%s is no URL", termsafe.Brief(text))
	default:
		schemes, err := v.schemes()
		if err != nil {
			return "", err
		}
		if !slices.Contains(schemes, scheme) {
			err := fmt.Errorf("%s is not of the web", termsafe.Brief(text))
			return "", command.Hint(err, "a line %s in %s lets such be handed to programs", scheme, v.Dir.Join(schemesFile))
		}
	}
	var b strings.Builder
	for _, c := range []byte(text) {
		if c <= ' ' || c == 0x7f || strings.IndexByte("\"'<>\\^`{|}", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

// schemes gives those that the user allows.
func (v *viewer) schemes() ([]string, error) {
	data, err := atomicfile.Read(v.Dir.Join(schemesFile), entries.MaxRules)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var list []string
	for line := range strings.Lines(string(data)) {
		line = strings.ToLower(strings.TrimSuffix(strings.TrimSpace(line), ":"))
		if line != "" && line[0] != '#' {
			list = append(list, line)
		}
	}
	return list, err
}
