package fetcher

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// EditOptions are the options of [Edit].
type EditOptions struct {
	Common
	Editor  string // command with arguments
	Yes     bool   // unsubscribe without asking
	NoFetch bool   // subscribe to new feeds without looking at their URLs
}

// editLine is a feed in the list that the user edits.
type editLine struct {
	hash    string // of the subscription; "" in the edited list
	url     string
	folders []string
	title   string
	number  int // of the line in the edited list
}

// editHelp is the beginning of the list.
const editHelp = `# A line for each feed: its URL, its folders, and ~ with its title. Quote words with spaces.
# Add a line to subscribe, remove one to unsubscribe, and change folders or titles.
# Lines that you leave as they are change nothing. A # begins a comment.
`

// maxEdited limits the size of the edited list.
const maxEdited = 64 << 20

// Edit opens the list of subscriptions in the user's editor, and applies the difference between the
// list as it was shown and the edited one: a feed or setting that changed meanwhile stays as it is.
// Feeds with secrets, such as headers, are comments in the list.
func Edit(ctx context.Context, o EditOptions, s *cmdline.Streams) error {
	r, end, err := o.begin(ctx, s, false, nil)
	if err != nil {
		return err
	}
	defer end()
	defer r.recording(s, "edit")()
	shown, text, err := r.editable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "lektor-edit-")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "feeds")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	e := &edit{r: r, o: o, s: s, file: file, in: bufio.NewReader(s.In), shown: shown, added: map[string]bool{}}
	if err = e.edit(ctx); err == nil {
		return os.RemoveAll(dir)
	}
	if now, rerr := os.ReadFile(file); errors.Is(rerr, fs.ErrNotExist) || rerr == nil && bytes.Equal(now, text) {
		return errors.Join(err, os.RemoveAll(dir))
	}
	if ctx.Err() != nil {
		s.Report.Warn("stopped; not all changes were made, and your list is in %s", file)
		return err
	}
	return cmdline.Hint(err, "your list is in %s", file)
}

// edit is an edit of the list of subscriptions.
type edit struct {
	r     *Runner
	o     EditOptions
	s     *cmdline.Streams
	file  string
	in    *bufio.Reader
	shown []editLine

	mu     sync.Mutex
	added  map[string]bool // hashes of the feeds of new lines
	failed []editLine      // lines whose change was not made
}

// edit runs the editor until the list has no mistakes, and applies the changes.
func (e *edit) edit(ctx context.Context) error {
	for {
		if err := e.runEditor(); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		text, err := atomicfile.Read(e.file, maxEdited)
		if err != nil {
			return fmt.Errorf("nothing was changed: %w", err)
		}
		lines, err := parseList(text)
		if err = errors.Join(err, e.checkNew(lines)); err == nil {
			return e.apply(ctx, lines)
		}
		if !e.s.InIsTerminal() {
			return fmt.Errorf("nothing was changed: %w", err)
		}
		e.s.Report.Print(err)
		if !e.ask("edit it again?") {
			return unchanged(ctx)
		}
	}
}

// runEditor runs the editor and waits for its end, also after a ^C, which may be for the editor.
func (e *edit) runEditor() error {
	words, err := cmdline.Words(e.o.Editor)
	if err != nil || len(words) == 0 {
		return fmt.Errorf("%q is not the command of an editor; set $EDITOR", e.o.Editor)
	}
	cmd := exec.Command(words[0], append(words[1:], e.file)...)
	cmd.Stderr = os.Stderr
	if in := e.s.InFile(); in != nil {
		cmd.Stdin = in
	}
	if out := e.s.OutFile(); out != nil {
		cmd.Stdout = out
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("nothing was changed: the editor %s: %w", words[0], err)
	}
	return nil
}

// ask asks the user a question on the terminal.
func (e *edit) ask(question string) bool {
	e.s.Report.Info("%s y or n", question)
	line, err := e.in.ReadString('\n')
	return (err == nil || errors.Is(err, io.EOF)) && strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "y")
}

// unchanged returns the error after a question that was not answered with yes. A ^C is an answer, too.
func unchanged(ctx context.Context) error {
	return cmp.Or(context.Cause(ctx), errors.New("nothing was changed"))
}

// editable returns the subscriptions as lines, and the text that shows them.
func (r *Runner) editable() (shown []editLine, text []byte, err error) {
	subs, err := subscriptions.List(r.Dir)
	if err != nil {
		return nil, nil, fmt.Errorf("the list would not be whole: %w", err)
	}
	slices.SortFunc(subs, (*subscriptions.Subscription).Compare)
	b := bytes.NewBufferString(editHelp)
	urls := map[string]bool{}
	for _, sub := range subs {
		l := editLine{hash: sub.Hash, url: sub.URL, title: termsafe.Line(sub.Title())}
		for _, c := range sub.Categories {
			l.folders = append(l.folders, termsafe.Line(c))
		}
		parsed, perr := parseList([]byte(l.String()))
		if why := r.uneditable(sub); why != "" {
			// A feed without a name of its own has its id as title, which may be a command.
			fmt.Fprintf(b, "# %s (%s; see lektor-fetch set)\n",
				termsafe.Line(shortScheme(l.title)+" "+feedurl.Public(shortScheme(sub.URL))), why)
		} else if perr != nil || len(parsed) != 1 || !parsed[0].same(l) || urls[l.url] {
			fmt.Fprintf(b, "# %s (its line would not be clear; see lektor-fetch set)\n",
				termsafe.Line(feedurl.Public(l.url)))
		} else {
			urls[l.url] = true
			shown = append(shown, l)
			fmt.Fprintln(b, l)
		}
	}
	return shown, b.Bytes(), nil
}

// shortScheme returns a URL, but of a command only the scheme.
func shortScheme(url string) string {
	if strings.HasPrefix(strings.ToLower(url), "exec:") {
		return "exec:"
	}
	return url
}

// uneditable returns the reason why a feed is a comment in the list, "" if it is a line.
func (r *Runner) uneditable(s *subscriptions.Subscription) string {
	for _, key := range []string{"headers", "filter"} {
		if v, err := settings.Get(r.Dir, s.Hash, key); v != "" || err != nil {
			return "it has " + key
		}
	}
	switch {
	case shortScheme(s.URL) != s.URL:
		return "it comes from a command"
	case feedurl.Public(s.URL) != s.URL:
		return "it has a password"
	}
	return ""
}

// String returns the line without its newline.
func (l editLine) String() string {
	words := []string{quoteWord(l.url)}
	for _, f := range l.folders {
		words = append(words, quoteWord(f))
	}
	if l.title != "" {
		words = append(words, quoteWord("~"+l.title))
	}
	return strings.Join(words, " ")
}

// same reports whether two lines say the same.
func (l editLine) same(m editLine) bool {
	return l.url == m.url && l.movedTo(m)
}

// movedTo reports whether a new line looks like l with another URL.
func (l editLine) movedTo(m editLine) bool {
	return l.title == m.title && slices.Equal(l.folders, m.folders)
}

// quoteWord quotes a word for [cmdline.Words].
func quoteWord(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\"'\\") {
		return word
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}

// parseList parses an edited list. The error names each line that has a mistake.
func parseList(text []byte) (lines []editLine, err error) {
	seen := map[string]int{}
	number := 0
	for raw := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
		number++
		if raw = strings.TrimSpace(raw); raw == "" || raw[0] == '#' {
			continue
		}
		l, lerr := parseEditLine(raw)
		if before := seen[l.url]; lerr == nil && before > 0 {
			lerr = fmt.Errorf("%s is in line %d already", feedurl.Public(l.url), before)
		}
		if lerr != nil {
			err = errors.Join(err, fmt.Errorf("line %d: %w", number, lerr))
			continue
		}
		seen[l.url], l.number = number, number
		lines = append(lines, l)
	}
	return lines, err
}

// parseEditLine parses a line: a URL, folders, and a title after ~.
func parseEditLine(raw string) (l editLine, err error) {
	words, err := cmdline.Words(raw)
	if err != nil || len(words) == 0 {
		return l, cmp.Or(err, errors.New("it is empty"))
	}
	l.url = words[0]
	if !strings.Contains(l.url, ":") && !strings.Contains(l.url, ".") {
		return l, fmt.Errorf("%s is not a URL", l.url)
	}
	for _, w := range words[1:] {
		title, isTitle := strings.CutPrefix(w, "~")
		switch {
		case isTitle && l.title != "":
			return l, errors.New("it has two titles; quote a title with spaces: \"~A title\"")
		case isTitle:
			l.title = strings.TrimSpace(title)
		case strings.Contains(w, "://"):
			return l, errors.New("it has two URLs; a line is for one feed")
		case strings.TrimSpace(w) == "":
			return l, errors.New("a folder has no name")
		default:
			l.folders = append(l.folders, w)
		}
	}
	return l, nil
}

// checkNew returns an error that names each new line whose URL cannot be subscribed to.
func (e *edit) checkNew(lines []editLine) (err error) {
	for _, l := range lines {
		if slices.ContainsFunc(e.shown, func(m editLine) bool { return m.url == l.url }) {
			continue
		}
		if _, lerr := newURL(l.url); lerr != nil {
			err = errors.Join(err, fmt.Errorf("line %d: %w", l.number, lerr))
		}
	}
	return err
}

// newURL returns the URL of a new line.
func newURL(word string) (string, error) {
	url, err := source(word)
	if err != nil {
		return "", err
	}
	if shortScheme(url) != url {
		return "", cmdline.Hint(errors.New("a command is not added by the list"), "lektor-fetch add subscribes to it")
	}
	return url, feedurl.Check(url)
}

// apply applies the difference between the list as it was shown and the edited lines. An error does
// not keep other changes from being made.
func (e *edit) apply(ctx context.Context, lines []editLine) error {
	edited := map[string]editLine{}
	for _, l := range lines {
		edited[l.url] = l
	}
	var gone, changed []editLine
	for _, l := range e.shown {
		now, ok := edited[l.url]
		switch {
		case !ok:
			gone = append(gone, l)
		case !now.same(l):
			changed = append(changed, l)
		}
		delete(edited, l.url)
	}
	if n := len(gone); n > 0 && !e.o.Yes {
		if !e.s.InIsTerminal() {
			return cmdline.Hint(fmt.Errorf("nothing was changed: the list lacks %s", humanize.Count(n, "feed")),
				"--yes unsubscribes from them")
		}
		if !e.ask(fmt.Sprintf("unsubscribe from %s?", humanize.Count(n, "feed"))) {
			return unchanged(ctx)
		}
	}
	e.addAll(ctx, slices.Collect(maps.Values(edited)))
	failed := slices.Clone(e.failed)
	for _, l := range changed {
		to := lines[slices.IndexFunc(lines, func(m editLine) bool { return m.url == l.url })]
		e.each(ctx, l, "changed", func() error { return e.change(l, to) })
	}
	for _, l := range gone {
		if e.added[l.hash] || !feedfiles.Subscribed(e.r.Dir, l.hash) {
			continue // a new line leads to this feed, or another process has ended the subscription
		}
		if ctx.Err() == nil && slices.ContainsFunc(failed, l.movedTo) {
			e.s.Report.Warn("%s: it stays, since its new URL could not be added", feedurl.Public(l.url))
			continue
		}
		e.each(ctx, l, "unsubscribed", func() error {
			return subscriptions.Remove(e.r.Writer, e.r.Dir, l.hash, e.r.record)
		})
	}
	switch {
	case ctx.Err() != nil && len(e.failed) > 0:
		return context.Cause(ctx)
	case len(e.failed) > 0:
		return fmt.Errorf("%s could not be made", humanize.Count(len(e.failed), "change"))
	}
	return nil
}

// addAll subscribes to the feeds of new lines, several at the same time.
func (e *edit) addAll(ctx context.Context, lines []editLine) {
	slices.SortFunc(lines, func(a, b editLine) int { return a.number - b.number })
	o := AddOptions{Common: e.o.Common, Look: LookAround}
	if e.s.InIsTerminal() && e.s.ErrIsTerminal() {
		o.choose = chooser(e.s)
	}
	if e.o.NoFetch {
		o.Look, o.NoFetch = LookNowhere, true
	}
	adding := workers.Limited(maxAdding)
	for _, l := range lines {
		o := o
		o.Feed = subscriptions.Subscription{Alias: l.title, Categories: l.folders}
		adding.Go(func() error {
			e.each(ctx, l, "", func() error { return e.add(ctx, l, o) })
			return nil
		})
	}
	_ = adding.Wait() // the functions return no error
}

// each makes a change of one feed, and reports it.
func (e *edit) each(ctx context.Context, l editLine, did string, change func() error) {
	err := context.Cause(ctx)
	if err == nil {
		if err = change(); err != nil {
			e.s.Report.Print(prefixed(feedurl.Public(l.url), err))
		} else if did != "" {
			e.s.Report.Info("%s: %s", feedurl.Public(l.url), did)
		}
	}
	if err != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.failed = append(e.failed, l)
	}
}

// change changes folders and title of a feed from a line to an edited one.
func (e *edit) change(from, to editLine) error {
	d := e.r.Dir
	sub, err := subscriptions.ReadWhole(d, from.hash)
	if err != nil {
		return fmt.Errorf("it is no longer subscribed to: %w", err)
	}
	if !slices.Equal(from.folders, to.folders) {
		folders := mergeFolders(sub.Categories, from.folders, to.folders)
		if err := subscriptions.Set(e.r.Writer, d, from.hash, "categories", strings.Join(folders, "\n"),
			e.r.record); err != nil {
			return err
		}
	}
	switch {
	case from.title == to.title:
		return nil
	case to.title == "" || to.title == termsafe.Line(sub.Name):
		return subscriptions.Unset(e.r.Writer, d, from.hash, "alias", e.r.record)
	}
	return subscriptions.Set(e.r.Writer, d, from.hash, "alias", to.title, e.r.record)
}

// mergeFolders returns the folders of an edited line, in its order, and then those that another
// process has added to the shown ones. A folder that another process has removed is not added again.
func mergeFolders(now, shown, edited []string) (folders []string) {
	add := func(f string) {
		if !slices.Contains(folders, f) {
			folders = append(folders, f)
		}
	}
	for _, f := range edited {
		if i := slices.IndexFunc(now, func(c string) bool { return termsafe.Line(c) == f }); i >= 0 {
			add(now[i])
		} else if !slices.Contains(shown, f) {
			add(f)
		}
	}
	for _, c := range now {
		if f := termsafe.Line(c); !slices.Contains(shown, f) && !slices.Contains(edited, f) {
			add(c)
		}
	}
	return folders
}

// add subscribes to the feed of a new line.
func (e *edit) add(ctx context.Context, l editLine, o AddOptions) error {
	url, err := newURL(l.url)
	if err != nil {
		return err
	}
	a := e.r.subscribe(ctx, lektordir.NormalizeID(url), o, e.s)
	if a.Hash == "" {
		return errors.New("not subscribed")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.added[a.Hash] = true
	return nil
}
