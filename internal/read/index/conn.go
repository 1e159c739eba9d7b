package index

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net/url"

	"modernc.org/sqlite"
)

// conn is a connection to a file of SQLite, for one goroutine at a time. It uses the driver
// directly, because database/sql costs more per row than SQLite. After its first error, all calls
// do nothing, so checking the error once at the end is enough.
type conn struct {
	c     driver.Conn
	stmts map[string]driver.Stmt
	err   error
}

// connect opens a file, and creates it if it is missing.
func connect(path string) (*conn, error) {
	// The driver treats the text after a question mark as options, so the path is escaped.
	c, err := (&sqlite.Driver{}).Open((&url.URL{Scheme: "file", Path: path}).String())
	if err != nil {
		return nil, err
	}
	return &conn{c: c, stmts: map[string]driver.Stmt{}}, nil
}

func (c *conn) close() error {
	for _, s := range c.stmts {
		_ = s.Close()
	}
	return c.c.Close()
}

// fail keeps the first error.
func (c *conn) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// prepare returns a statement, which it prepares only once.
func (c *conn) prepare(text string) driver.Stmt {
	if c.err != nil {
		return nil
	}
	s := c.stmts[text]
	if s == nil {
		var err error
		if s, err = c.c.Prepare(text); err != nil {
			c.fail(err)
			return nil
		}
		c.stmts[text] = s
	}
	return s
}

func named(args []any) []driver.NamedValue {
	list := make([]driver.NamedValue, len(args))
	for i, a := range args {
		if n, ok := a.(int); ok {
			a = int64(n)
		}
		list[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	return list
}

// exec runs a statement that returns no rows. Arguments are int64, int, string, []byte
// or nil.
func (c *conn) exec(text string, args ...any) {
	if s := c.prepare(text); s != nil {
		if _, err := s.(driver.StmtExecContext).ExecContext(context.Background(), named(args)); err != nil {
			c.fail(err)
		}
	}
}

// rows are the results of a statement. They must be read to the end or closed.
type rows struct {
	c      *conn
	r      driver.Rows
	values []driver.Value
}

// query runs a statement. A statement is read to the end before it is run again.
func (c *conn) query(text string, args ...any) *rows {
	r := &rows{c: c}
	if s := c.prepare(text); s != nil {
		var err error
		if r.r, err = s.(driver.StmtQueryContext).QueryContext(context.Background(), named(args)); err != nil {
			r.r = nil
			c.fail(err)
			return r
		}
		r.values = make([]driver.Value, len(r.r.Columns()))
	}
	return r
}

// next advances to the first or the next row. At the end it closes the statement.
func (r *rows) next() bool {
	if r.r == nil {
		return false
	}
	err := r.r.Next(r.values)
	if err == nil {
		return true
	}
	if !errors.Is(err, io.EOF) {
		r.c.fail(err)
	}
	r.close()
	return false
}

func (r *rows) close() {
	if r.r != nil {
		if err := r.r.Close(); err != nil {
			r.c.fail(err)
		}
		r.r = nil
	}
}

// A damaged file can have any value anywhere: a value of another type counts as empty. If the
// statement failed and there is no row, all values are empty.

func (r *rows) value(i int) driver.Value {
	if i >= len(r.values) {
		return nil
	}
	return r.values[i]
}

func (r *rows) int(i int) int64 {
	n, _ := r.value(i).(int64)
	return n
}

func (r *rows) null(i int) bool { return r.value(i) == nil }

func (r *rows) blob(i int) []byte {
	b, _ := r.value(i).([]byte)
	return b
}

// one runs a statement and returns its first row, and whether there is one.
func (c *conn) one(text string, args ...any) (*rows, bool) {
	r := c.query(text, args...)
	if !r.next() {
		return r, false
	}
	values := append([]driver.Value(nil), r.values...)
	r.close()
	r.values = values
	return r, true
}

// meta returns the value of a key in the table meta, as a row of one value.
func (c *conn) meta(key string) (*rows, bool) {
	return c.one("SELECT value FROM meta WHERE key = ?", key)
}

func (c *conn) setMeta(key string, value any) {
	c.exec("INSERT OR REPLACE INTO meta VALUES (?, ?)", key, value)
}

// code returns the primary result code of an error, 0 if it is not SQLite's.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}
