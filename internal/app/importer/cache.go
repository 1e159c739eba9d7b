package importer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver of that name

	"github.com/lektordir/lektor/internal/moving"
)

// newsboatCache reads the entries in the database of newsboat. It is opened for reading
// alone. One that cannot be read so, as newsboat was killed while it wrote, or is at
// work, is read from a copy: to put such a file in order is newsboat's business.
func newsboatCache(ctx context.Context, path string) (items []moving.Item, notes []string, err error) {
	if fi, err := os.Stat(path); err != nil {
		return nil, nil, err
	} else if !fi.Mode().IsRegular() {
		return nil, nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	} else if fi.Size() == 0 {
		return nil, nil, nil // newsboat never fetched anything
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs // in a URL there is no other
	}
	if !unfinished(path) {
		if items, notes, err = readCache(ctx, path, "mode=ro"); err == nil || ctx.Err() != nil {
			return items, notes, err
		}
	}
	dir, err := os.MkdirTemp("", "lektor-import-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	for _, end := range []string{"", "-journal", "-wal"} {
		if err := copyFile(filepath.Join(dir, "cache.db"+end), path+end); err != nil && (end == "" || !errors.Is(err, fs.ErrNotExist)) {
			return nil, nil, err
		}
	}
	if items, notes, err = readCache(ctx, filepath.Join(dir, "cache.db"), ""); err != nil {
		err = fmt.Errorf("%s: it cannot be read as newsboat's cache: %w", path, err)
	}
	return items, notes, err
}

// unfinished tells whether a transaction was not finished, or is under way.
func unfinished(path string) bool {
	for _, end := range []string{"-journal", "-wal"} {
		if fi, err := os.Stat(path + end); err == nil && fi.Size() > 0 {
			return true
		}
	}
	return false
}

func copyFile(to, from string) error {
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}

// readCache reads the table of entries. Columns that came to it with later versions of
// newsboat may be missing.
func readCache(ctx context.Context, path, options string) (items []moving.Item, notes []string, err error) {
	source := url.URL{Scheme: "file", Path: path, RawQuery: options}
	db, err := sql.Open("sqlite", source.String())
	if err != nil {
		return nil, nil, err
	}
	defer db.Close()
	columns, err := columnsOf(ctx, db)
	if err != nil {
		return nil, nil, err
	}
	or := func(column, otherwise string) string {
		if columns[column] {
			return "coalesce(" + column + ", " + otherwise + ")"
		}
		return otherwise
	}
	rows, err := db.QueryContext(ctx, "SELECT guid, title, url, feedurl, CAST(pubDate AS INTEGER), CAST(unread AS INTEGER), "+or("flags", "''")+", CAST("+or("deleted", "0")+" AS INTEGER) FROM rss_item ORDER BY id")
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	strange := map[rune]bool{}
	for rows.Next() {
		var i moving.Item
		var guid, title, link, feed, flags []byte // what is no text is taken all the same
		var date, unread, deleted int64
		if err := rows.Scan(&guid, &title, &link, &feed, &date, &unread, &flags, &deleted); err != nil {
			return nil, nil, err
		}
		i.ID, i.URL, i.Title, i.Feed = strings.TrimSpace(string(guid)), strings.TrimSpace(string(link)), strings.TrimSpace(string(title)), string(feed)
		if date > 0 {
			i.Date = time.Unix(date, 0).UTC()
		}
		i.Read, i.Trashed = unread == 0 || deleted != 0, deleted != 0
		for _, c := range string(flags) {
			switch {
			case c == 'F':
				i.Flagged = true
			case c >= 'a' && c <= 'z':
				if !strings.ContainsRune(i.Flags, c) {
					i.Flags += string(c)
				}
			default:
				strange[c] = true
			}
		}
		items = append(items, i)
	}
	for _, c := range slices.Sorted(maps.Keys(strange)) {
		notes = append(notes, fmt.Sprintf("the flag %q is none here: flags of users are small letters", c))
	}
	return items, notes, rows.Err()
}

// columnsOf gives the names of the columns of the table of entries.
func columnsOf(ctx context.Context, db *sql.DB) (map[string]bool, error) {
	rows, err := db.QueryContext(ctx, "SELECT name FROM pragma_table_info('rss_item')")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names := map[string]bool{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names[name] = true
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New("it has no table of entries")
	}
	return names, nil
}
