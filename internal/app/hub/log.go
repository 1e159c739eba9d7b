package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/http/httpserver"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// logbook is the log of the hub. A line has time, event, feed and details, with tabs
// between. When the file is long, it is renamed to log.1.
type logbook struct {
	path     string
	now      func() time.Time
	reporter httpserver.Reporter // reporter that gets each line, too; may be nil

	mu     sync.Mutex
	file   *os.File
	size   int64
	recent []event // oldest first
}

// event is one line of the log.
type event struct {
	Time              time.Time
	What, Feed, About string
}

const (
	maxLog    = 4 << 20
	maxRecent = 100
)

func openLog(dir string, now func() time.Time) (*logbook, error) {
	l := &logbook{path: filepath.Join(dir, "log"), now: now}
	if err := l.open(); err != nil {
		return nil, err
	}
	// The page also shows events from before the start.
	if data, err := atomicfile.Read(l.path, maxLog+64<<10); err == nil {
		for line := range strings.Lines(string(data)) {
			if f := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); len(f) == 4 {
				l.remember(event{when(f[0]), f[1], f[2], f[3]})
			}
		}
	}
	return l, nil
}

func (l *logbook) open() error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	fi, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return err
	}
	l.file, l.size = f, fi.Size()
	return nil
}

func (l *logbook) remember(e event) {
	l.recent = append(l.recent, e)
	l.recent = l.recent[max(0, len(l.recent)-maxRecent):]
}

// add adds a line. It hides paths of callbacks, see [hide], and passwords in URLs. The page
// shows even less, see [Hub.shown].
func (l *logbook) add(what, feed, format string, args ...any) {
	e := event{l.now(), what, oneField(feedurl.Public(feed)), oneField(hide(fmt.Sprintf(format, args...)))}
	line := timeText(e.Time) + "\t" + e.What + "\t" + e.Feed + "\t" + e.About + "\n"
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remember(e)
	if l.reporter != nil {
		l.reporter.Info("%s", strings.TrimSpace(e.What+" "+e.Feed+": "+e.About))
	}
	if l.file == nil {
		return
	}
	if l.size > maxLog {
		_ = l.file.Close()
		l.file = nil
		if err := os.Rename(l.path, l.path+".1"); err != nil && !errors.Is(err, fs.ErrNotExist) || l.open() != nil {
			return
		}
	}
	n, _ := l.file.WriteString(line)
	l.size += int64(n)
}

// Recent returns the recent events, newest first.
func (l *logbook) Recent() []event {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := slices.Clone(l.recent)
	slices.Reverse(out)
	return out
}

func (l *logbook) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}

// oneField returns a text as one field of a line, without control characters.
func oneField(s string) string { return termsafe.Brief(s) }

// reason describes an error of an exchange for the log. For a private address, it names the
// flag that allows it.
func reason(err error, flag string) string {
	if private := (*httpmsg.PrivateError)(nil); errors.As(err, &private) {
		return private.Where() + " was not asked; if it is yours, allow it with " + flag
	}
	if redirect := (*httpmsg.RedirectError)(nil); errors.As(err, &redirect) {
		return "a redirect was not followed: " + redirect.Reason // without the target, which may be incomplete
	}
	return err.Error()
}

const (
	allowFeeds     = "--allow-feeds"
	allowCallbacks = "--allow-callbacks"
)

// anyURL matches a possible URL up to the next space. Quotes and brackets may be part of
// it.
var anyURL = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)https?://\S+`) })

// hide removes the paths of callbacks from a message, also those of redirects.
func hide(message string) string {
	return anyURL().ReplaceAllStringFunc(message, func(s string) string {
		bare := strings.TrimRight(s, "\":,.")
		u, err := url.Parse(bare)
		if err != nil || u.Host == "" {
			return "the callback" + s[len(bare):]
		}
		return u.Scheme + "://" + u.Host + "/…" + s[len(bare):]
	})
}
