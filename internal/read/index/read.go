package index

import (
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/content/htmltext"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/lektordir"
)

// fields are the fields of an entry that the index reads.
const fields = lektordir.FieldTitle | lektordir.FieldAuthor | lektordir.FieldPubDate | lektordir.FieldType |
	lektordir.FieldCategories | lektordir.FieldEnclosures | lektordir.FieldReplaces | lektordir.FieldInReplyTo |
	lektordir.FieldDuration | lektordir.FieldEpisode | lektordir.FieldSeason | lektordir.FieldElements

// maxText is the maximum size in bytes of a content that is indexed. A longer content makes the
// entry odd.
const maxText = 8 << 20

// doc is an entry in the form of the index.
type doc struct {
	// odd means that the entry has to be read whenever it is asked about: what is
	// missing may come, what the system refuses may be allowed, and where a link leads
	// may change. Then nothing else is known.
	odd bool
	// ctime is that of the directory of the entry, in nanoseconds; 0 if it is odd. young
	// means that the entry was perhaps still being written, as it was not renamed to its
	// place as a whole.
	ctime int64
	young bool
	// torn is true if the entry changed while it was read.
	torn bool

	entry lektordir.Entry
	link  int64 // see linkOf
	words []string
	text  string // the words as the index wants them
}

// extras are the fields that few queries ask for.
type extras struct {
	Categories []string              `json:"c,omitempty"`
	Enclosures []lektordir.Enclosure `json:"e,omitempty"`
	Replaces   string                `json:"r,omitempty"`
	InReplyTo  []lektordir.ReplyTo   `json:"t,omitempty"`
	Duration   time.Duration         `json:"d,omitempty"`
	Episode    int                   `json:"n,omitempty"`
	Season     int                   `json:"s,omitempty"`
	Elements   lektordir.Elements    `json:"x,omitempty"`
}

// more returns the extras as JSON, nil if there are none.
func (d *doc) more() any {
	e := &d.entry
	b, err := json.Marshal(extras{e.Categories, e.Enclosures, e.Replaces, e.InReplyTo, e.Duration, e.Episode, e.Season,
		e.Elements})
	if err != nil || string(b) == "{}" {
		return nil // never fails for strings and numbers
	}
	return b
}

// read reads an entry for the index; nil for one that is gone. It keeps pairs of the words common.
func read(d *lektordir.Dir, ref lektordir.Ref, common map[string]bool) *doc {
	var st unix.Stat_t
	path := d.Path() + "/" + ref.Path()
	if err := unix.Lstat(path, &st); err != nil {
		if err == unix.ENOENT {
			return nil
		}
		return &doc{odd: true}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return &doc{odd: true}
	}
	// A rename sets only the ctime, and so does setting the times of a copy. A later write sets
	// ctime and mtime.
	out := &doc{ctime: unix.TimespecToNsec(st.Ctim)}
	out.young = unix.TimespecToNsec(st.Mtim) >= out.ctime
	e, err := d.ReadEntry(ref, fields|lektordir.FieldContent|lektordir.FieldFeed|lektordir.FieldLink|lektordir.FieldID)
	// If the entry was moved meanwhile, and perhaps back, it may have been read in part.
	if unix.Lstat(path, &st) != nil || unix.TimespecToNsec(st.Ctim) != out.ctime {
		out.torn = true
	}
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return &doc{odd: true}
	}
	if unix.Lstat(path+"/id", &st) != nil || len(e.Content) > maxText {
		return &doc{odd: true}
	}
	out.words, out.text = tokens(common, query.Fold(e.Title), query.Fold(e.Author),
		query.Fold(htmltext.Text(e.Content, e.Type)))
	out.link = linkOf(feedurl.Article(e.URL()))
	e.Content = nil
	out.entry = *e
	return out
}

// linkOf returns the hash of a link in the form of [feedurl.Article], 0 for "".
func linkOf(article string) int64 {
	if article == "" {
		return 0
	}
	return int64(mix(hash(offset, article)) | 1)
}

// readAtOnce is the number of entries that are read before they are processed.
const readAtOnce = 512
