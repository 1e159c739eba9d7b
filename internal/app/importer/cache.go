package importer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver of that name

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/protocol/importfmt"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// cache is the database of newsboat.
type cache struct {
	db      *sql.DB
	columns map[string]bool // columns of the table of entries
	items   []importfmt.Item
	feeds   map[string]importfmt.Feed // their names and pages, by URL
	notes   []string
}

// close closes the database.
func (c *cache) close() { c.db.Close() }

// openCache reads the entries in the database of newsboat, except their texts. It only reads, so that newsboat's files
// stay as they are, and waits while newsboat writes.
func openCache(ctx context.Context, path string) (*cache, error) {
	if fi, err := os.Stat(path); err != nil {
		return nil, err
	} else if !fi.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	} else if fi.Size() == 0 {
		return nil, nil // newsboat never fetched anything
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	c := &cache{db: db}
	if err = c.readColumns(ctx); err == nil {
		err = c.readItems(ctx)
	}
	if err != nil {
		db.Close()
		return nil, cmdline.Hint(fmt.Errorf("%s: cannot be read as newsboat's cache: %w", path, err),
			"start newsboat and end it: it repairs its cache after a crash; if that does not help, sqlite3 may save what is whole: sqlite3 cache.db .recover | sqlite3 saved.db; then name that behind the path of urls")
	}
	c.readFeeds(ctx)
	return c, nil
}

// or returns an SQL expression for a column; its value is otherwise if the column is missing or
// NULL.
func (c *cache) or(column, otherwise string) string {
	if c.columns[column] {
		return "coalesce(" + column + ", " + otherwise + ")"
	}
	return otherwise
}

// readColumns reads the names of the columns. Those that later versions of newsboat added may be missing.
func (c *cache) readColumns(ctx context.Context) error {
	rows, err := c.db.QueryContext(ctx, "SELECT * FROM rss_item LIMIT 0")
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	c.columns = map[string]bool{}
	for _, name := range names {
		c.columns[name] = true
	}
	return err
}

// readItems reads identity, date and flags of the entries, without their content.
func (c *cache) readItems(ctx context.Context) error {
	rows, err := c.db.QueryContext(ctx,
		"SELECT id, guid, title, url, feedurl, CAST(pubDate AS INTEGER), CAST(unread AS INTEGER), "+c.or("flags",
			"''")+", CAST("+c.or("deleted", "0")+" AS INTEGER) FROM rss_item ORDER BY id")
	if err != nil {
		return err
	}
	defer rows.Close()
	strange := map[rune][]string{}
	feeds := map[string]string{} // holds each URL once in memory
	var id sql.NullInt64
	var guid, title, link, feed, flags sql.RawBytes // RawBytes accepts values that are not text
	var date, unread, deleted sql.NullInt64
	for rows.Next() {
		var i importfmt.Item
		if err := rows.Scan(&id, &guid, &title, &link, &feed, &date, &unread, &flags, &deleted); err != nil {
			return err
		}
		if _, ok := feeds[string(feed)]; !ok {
			feeds[string(feed)] = string(feed)
		}
		i.Row, i.Feed = id.Int64, feeds[string(feed)]
		i.ID, i.URL, i.Title = strings.TrimSpace(string(guid)), strings.TrimSpace(string(link)),
			strings.TrimSpace(string(title))
		if date.Int64 > 0 {
			i.Date = time.Unix(date.Int64, 0).UTC()
		}
		i.Read, i.Trashed = unread.Int64 == 0 || deleted.Int64 != 0, deleted.Int64 != 0
		for _, c := range string(flags) {
			switch {
			case c == 'F':
				i.Flagged = true
			case c >= 'a' && c <= 'z':
				if !strings.ContainsRune(i.Flags, c) {
					i.Flags += string(c)
				}
			default:
				strange[c] = append(strange[c], i.Title)
				i.Marked = true
			}
		}
		i.Identify()
		c.items = append(c.items, i)
	}
	for _, r := range slices.Sorted(maps.Keys(strange)) {
		c.notes = append(c.notes,
			fmt.Sprintf("the flag %q is ignored, because lektor's user flags are small letters; it was on %s", r,
				someTitles(strange[r])))
	}
	return rows.Err()
}

// readFeeds reads the names of the feeds: for a feed that no longer answers, the cache is the only
// source. It ignores errors, for example a missing table.
func (c *cache) readFeeds(ctx context.Context) {
	c.feeds = map[string]importfmt.Feed{}
	rows, err := c.db.QueryContext(ctx, "SELECT rssurl, title, url FROM rss_feed")
	if err != nil {
		return
	}
	defer rows.Close()
	for rows.Next() {
		var feed, title, page sql.RawBytes
		if rows.Scan(&feed, &title, &page) != nil {
			return
		}
		c.feeds[string(feed)] = importfmt.Feed{Name: strings.Join(strings.Fields(string(title)), " "),
			Link: string(page)}
	}
}

// texts reads the texts of entries. It may be called concurrently.
func (c *cache) texts(ctx context.Context, kept []importfmt.Kept) error {
	at := make(map[int64]*importfmt.Item, len(kept))
	var list strings.Builder
	for i := range kept {
		if list.Len() > 0 {
			list.WriteByte(',')
		}
		fmt.Fprint(&list, kept[i].Row)
		at[kept[i].Row] = kept[i].Item
	}
	rows, err := c.db.QueryContext(ctx, "SELECT id, "+c.or("author", "''")+", "+c.or("content",
		"''")+", "+c.or("content_mime_type", "''")+", "+c.or("base", "''")+", "+
		c.or("enclosure_url", "''")+", "+c.or("enclosure_type", "''")+" FROM rss_item WHERE id IN ("+list.String()+")")
	if err != nil {
		return err
	}
	defer rows.Close()
	var id int64
	var author, content, kind, base, file, fileType sql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&id, &author, &content, &kind, &base, &file, &fileType); err != nil {
			return err
		}
		i := at[id]
		if i == nil {
			continue
		}
		// Caches without a column for the type do not distinguish text from HTML.
		i.Text = &importfmt.Text{Author: strings.TrimSpace(string(author)), Content: string(content),
			Plain: string(kind) == "text/plain", Base: string(base)}
		if len(file) > 0 {
			i.Text.Enclosures = []importfmt.Enclosure{{URL: string(file), Type: string(fileType), Length: -1}}
		}
	}
	return rows.Err()
}

// someTitles names a few entries.
func someTitles(titles []string) string {
	const most = 3
	var b strings.Builder
	for i, t := range titles[:min(len(titles), most)] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", termsafe.Brief(t))
	}
	if more := len(titles) - most; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}
