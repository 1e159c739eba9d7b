package importer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/protocol/importfmt"
	"github.com/lektordir/lektor/internal/protocol/opml"
)

// Readers are the feed readers whose data can be imported.
var Readers = []string{"newsboat", "sfeed", "r2e", "feedly", "inoreader", "miniflux"}

// readers holds, for each of Readers, the function that reads its files. No paths mean the default
// files.
var readers = map[string]func(ctx context.Context, paths []string, s *cmdline.Streams) (*source, error){
	"newsboat": fromNewsboat, "sfeed": fromSfeed, "r2e": fromR2E, "feedly": fromService, "inoreader": fromService,
	"miniflux": fromService,
}

// Maximum sizes in bytes of the files that are read.
const (
	maxList   = 16 << 20
	maxExport = 512 << 20
)

// home returns the user's home directory, "" if there is none.
func home() string {
	h, _ := os.UserHomeDir()
	return h
}

func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}

// first returns the first of paths that exists, else the first of all.
func first(paths ...string) string {
	for _, p := range paths {
		if atomicfile.Exists(p) {
			return p
		}
	}
	return paths[0]
}

// named returns the path of a file that the user names first, perhaps by its directory, or else the
// first of paths that exists.
func named(args []string, base string, paths ...string) string {
	switch {
	case len(args) == 0:
		return first(paths...)
	case isDir(args[0]):
		return filepath.Join(args[0], base)
	}
	return args[0]
}

// atMost returns a usage error if there are more than n paths.
func atMost(paths []string, n int, what string) error {
	if len(paths) > n {
		return cmdline.Usagef("unexpected argument %s: name only %s", paths[n], what)
	}
	return nil
}

// fromNewsboat reads newsboat's urls and its cache.
func fromNewsboat(ctx context.Context, paths []string, s *cmdline.Streams) (*source, error) {
	if err := atMost(paths, 2, "the directory of newsboat, or its urls and its cache.db"); err != nil {
		return nil, err
	}
	config := filepath.Join(cmdline.BaseDir("XDG_CONFIG_HOME", ".config"), "newsboat")
	data := filepath.Join(cmdline.BaseDir("XDG_DATA_HOME", ".local/share"), "newsboat")
	urls := named(paths, "urls", filepath.Join(config, "urls"), filepath.Join(home(), ".newsboat/urls"),
		filepath.Join(home(), ".newsbeuter/urls"))
	text, err := atomicfile.Read(urls, maxList)
	if err != nil {
		return nil, cmdline.Hint(err, "name the directory of newsboat, or its file urls: import --from newsboat PATH")
	}
	src := &source{Library: importfmt.Newsboat(string(text)), own: true}
	dir := filepath.Dir(urls)
	cache := first(filepath.Join(dir, "cache.db"), filepath.Join(data, "cache.db"))
	if set, err := atomicfile.Read(filepath.Join(dir, "config"), maxList); err == nil {
		if named := src.NewsboatConfig(string(set)); named != "" {
			cache, _ = cmdline.ExpandHome(named) // without a home, opening it fails
		}
	}
	if len(paths) > 1 {
		cache = paths[1]
	}
	c, err := openCache(ctx, cache)
	if c != nil {
		src.items, src.read, src.close = c.items, c.texts, c.close
		src.Notes = append(src.Notes, c.notes...)
		for i := range src.Feeds {
			f := &src.Feeds[i]
			f.Name, f.Link = c.feeds[f.Key].Name, c.feeds[f.Key].Link
		}
	}
	if errors.Is(err, fs.ErrNotExist) && len(paths) < 2 {
		s.Report.Warn("%s does not exist: entries that you read in newsboat will be unread", cache)
		err = nil
	}
	return src, err
}

// fromSfeed reads sfeed's sfeedrc. If $SFEED_URL_FILE or a second path names the list of URLs that
// were read in sfeed_curses, it reads this list and the files of entries, too.
func fromSfeed(_ context.Context, paths []string, s *cmdline.Streams) (*source, error) {
	if err := atMost(paths, 2, "sfeedrc, and the file of URLs that sfeed_curses keeps"); err != nil {
		return nil, err
	}
	rc := named(paths, "sfeedrc", filepath.Join(home(), ".sfeed/sfeedrc"))
	seen := os.Getenv("SFEED_URL_FILE")
	if len(paths) > 1 {
		seen = paths[1]
	}
	text, err := atomicfile.Read(rc, maxList)
	if err != nil {
		return nil, cmdline.Hint(err, "name it: import --from sfeed PATH")
	}
	lib, at := importfmt.Sfeed(string(text))
	src := &source{Library: lib, own: true}
	if seen == "" {
		return src, nil
	}
	list, err := atomicfile.Read(seen, maxExport)
	if err != nil {
		return nil, err
	}
	read := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		read[strings.TrimRight(line, "\n")] = true
	}
	// sfeed_update keeps the entries in this directory.
	if at, _ = cmdline.ExpandHome(at); at == "" {
		at = filepath.Join(filepath.Dir(rc), "feeds")
	}
	for _, f := range lib.Feeds {
		data, err := atomicfile.Read(filepath.Join(at, f.Key), maxExport)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			s.Report.Info("%s was never fetched by sfeed", f.Title)
			continue
		}
		src.items = append(src.items, importfmt.SfeedItems(f.Key, string(data),
			func(url string) bool { return read[url] })...)
	}
	return src, nil
}

// fromR2E reads the configuration of rss2email, and its data.
func fromR2E(_ context.Context, paths []string, s *cmdline.Streams) (*source, error) {
	if err := atMost(paths, 2, "the configuration of rss2email, and its data"); err != nil {
		return nil, err
	}
	const name = "rss2email.cfg"
	config := named(paths, name, filepath.Join(cmdline.BaseDir("XDG_CONFIG_HOME", ".config"), name))
	data := filepath.Join(cmdline.BaseDir("XDG_DATA_HOME", ".local/share"), "rss2email.json")
	if len(paths) > 0 {
		data = first(filepath.Join(filepath.Dir(config), "rss2email.json"), data)
	}
	if len(paths) > 1 {
		data = paths[1]
	}
	text, err := atomicfile.Read(config, maxList)
	if err != nil {
		return nil, cmdline.Hint(err, "name it: import --from r2e PATH")
	}
	src := &source{Library: importfmt.R2E(string(text)), own: true}
	seen, err := atomicfile.Read(data, maxExport)
	if errors.Is(err, fs.ErrNotExist) && len(paths) < 2 {
		s.Report.Warn("%s does not exist: entries that rss2email mailed will be unread", data)
		return src, nil
	}
	if err == nil {
		var notes []string
		src.items, notes, err = importfmt.R2ESeen(seen)
		src.Notes = append(src.Notes, notes...)
		if err != nil {
			err = fmt.Errorf("%s: %w", data, err)
		}
	}
	return src, err
}

// fromService reads the files that a web service exports: OPML, and entries as JSON.
func fromService(_ context.Context, paths []string, _ *cmdline.Streams) (*source, error) {
	if len(paths) == 0 {
		return nil, cmdline.Usagef("name the files that were exported: OPML, and entries as JSON")
	}
	src := &source{Library: &importfmt.Library{}}
	for _, path := range paths {
		data, err := atomicfile.Read(path, maxExport)
		if err != nil {
			return nil, err
		}
		if begin := strings.TrimLeft(string(data[:min(len(data), 64)]), "\ufeff \t\r\n"); strings.HasPrefix(begin,
			"{") || strings.HasPrefix(begin, "[") {
			items, err := importfmt.Stream(data)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			src.items = append(src.items, items...)
			continue
		}
		doc, err := opml.Parse(data)
		if err != nil {
			return nil, fmt.Errorf("%s: neither JSON nor a list of feeds: %w", path, err)
		}
		for _, f := range doc.Feeds() {
			title := f.Title
			if title == f.URL {
				title = ""
			}
			src.Feeds = append(src.Feeds, importfmt.Feed{URL: f.URL, Key: f.URL, Title: title, Link: f.HTMLURL,
				Categories: f.Categories})
		}
	}
	return src, nil
}
