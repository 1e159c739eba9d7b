// Package opml reads and writes lists of subscriptions in OPML. It preserves unknown attributes,
// elements and outlines.
package opml

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/lektordir/lektor/internal/text/markup"
	"github.com/lektordir/lektor/internal/text/xmltext"
)

// Document is an OPML document.
type Document struct {
	prolog []*Node // comments and processing instructions before the root
	root   *Node
}

// Node is an element, a text, or, if Raw is set, a comment or processing instruction.
type Node struct {
	Name     string // name of an element, as in the document; else empty
	Attrs    []Attr
	Children []*Node
	Text     string
	Raw      string
}

// Attr is an attribute of an element, with its name as in the document.
type Attr struct{ Name, Value string }

// Feed is an outline that names a feed.
type Feed struct {
	URL         string // xmlUrl
	ID          string // for Update: another URL that a document may have for the feed
	Title       string // the text attribute, else title; the other way round in lists of gPodder
	Name        string // for Update: text and title if Title is empty
	HTMLURL     string
	Description string
	// Categories are the folders of the feed, each a path in the form of [JoinPath]; empty for the
	// top level.
	Categories []string
	Paused     bool // the user has paused it; the attribute is lektor's own
}

// The attribute of a paused feed, and the namespace of its prefix.
const (
	pausedAttr = "lektor:paused"
	namespace  = "https://github.com/lektordir/lektor/opml"
)

// New returns an empty document with a title.
func New(title string) *Document {
	d := &Document{root: &Node{Name: "opml", Attrs: []Attr{{"version", "2.0"}}}}
	d.root.Children = []*Node{
		{Name: "head", Children: []*Node{{Name: "title", Children: []*Node{{Text: title}}}}},
		{Name: "body"},
	}
	return d
}

// normalize ensures that the document has one head and one body, and moves outlines outside the
// body into it.
func (d *Document) normalize() {
	if d.root.attr("version") == nil {
		d.root.Attrs = append([]Attr{{"version", "2.0"}}, d.root.Attrs...)
	}
	head, body := d.root.child("head"), d.root.child("body")
	var rest []*Node
	var outlines []*Node
	for _, n := range d.root.Children {
		switch {
		case n == head || n == body:
		case n.is("head"):
			head.Children = append(head.Children, n.Children...)
		case n.is("body"):
			outlines = append(outlines, n.Children...)
		case n.is("outline"):
			outlines = append(outlines, n)
		case !n.isSpace():
			rest = append(rest, n)
		}
	}
	if head == nil {
		head = &Node{Name: "head"}
	}
	if body == nil {
		body = &Node{Name: "body"}
		// If the end tag of the head is missing, the body is in the head.
		if inner := head.child("body"); inner != nil {
			body = inner
			head.Children = slices.DeleteFunc(head.Children, func(n *Node) bool { return n == inner })
		}
	}
	body.Children = append(body.Children, outlines...)
	d.root.Children = append([]*Node{head, body}, rest...)
}

func (d *Document) head() *Node { return d.root.child("head") }
func (d *Document) body() *Node { return d.root.child("body") }

// Feeds returns the feeds in the order of their first outlines. A feed in several folders is
// returned once, with all of them.
func (d *Document) Feeds() []Feed {
	var feeds []Feed
	first, second := "text", "title"
	if title := d.head().child("title"); title != nil &&
		slices.ContainsFunc(title.Children, func(c *Node) bool { return strings.HasPrefix(c.Text, "gPodder ") }) {
		first, second = second, first // its text is the description of the podcast
	}
	index := map[string]int{}
	d.walk(func(n *Node, path string) {
		url := n.feedURL()
		if url == "" {
			return
		}
		i, ok := index[url]
		if !ok {
			i = len(feeds)
			index[url] = i
			feeds = append(feeds, Feed{
				URL:         url,
				Title:       cmp.Or(fold(n.get(first)), fold(n.get(second))),
				HTMLURL:     strings.TrimSpace(n.get("htmlUrl")),
				Description: n.get("description"),
			})
		}
		feeds[i].Paused = feeds[i].Paused || n.get(pausedAttr) == "on"
		if c := feeds[i].Categories; path != "" && len(c) < maxCategories && !slices.Contains(c, path) {
			feeds[i].Categories = append(c, path)
		}
	})
	return feeds
}

// Pages returns the URLs of the pages of feeds whose outlines have no URL of the feed itself, in the
// order of the document, without duplicates.
func (d *Document) Pages() []string {
	var pages []string
	d.walk(func(n *Node, _ string) {
		page := strings.TrimSpace(n.get("htmlUrl"))
		if page != "" && n.feedURL() == "" && n.namesFeed() && !slices.Contains(pages, page) {
			pages = append(pages, page)
		}
	})
	return pages
}

// walk calls f for each outline with the path of its folder. An outline is a folder unless it is a
// feed.
func (d *Document) walk(f func(n *Node, path string)) {
	var down func(n *Node, path string)
	down = func(n *Node, path string) {
		for _, c := range n.Children {
			if !c.is("outline") {
				continue
			}
			f(c, path)
			if c.feedURL() != "" {
				down(c, path)
			} else {
				down(c, c.within(path))
			}
		}
	}
	down(d.body(), "")
}

// Rewrite replaces the value of every attribute by the result of f.
func (d *Document) Rewrite(f func(value string) string) {
	var down func(n *Node)
	down = func(n *Node) {
		for i := range n.Attrs {
			n.Attrs[i].Value = f(n.Attrs[i].Value)
		}
		for _, c := range n.Children {
			down(c)
		}
	}
	down(d.root)
}

// feedURL returns the URL of the feed of an outline, or "".
func (n *Node) feedURL() string {
	if u := strings.TrimSpace(n.get("xmlUrl")); u != "" {
		return u
	}
	// Some programs write url instead of xmlUrl; in other types url has another meaning.
	if n.namesFeed() {
		return strings.TrimSpace(n.get("url"))
	}
	return ""
}

// namesFeed reports whether the type of an outline is that of a feed.
func (n *Node) namesFeed() bool {
	return slices.Contains([]string{"rss", "atom", "feed"}, strings.ToLower(n.get("type")))
}

func (n *Node) folderName() string {
	return cmp.Or(fold(n.get("text")), fold(n.get("title")))
}

// within returns the path of a folder inside the folder at path. A folder without a name, or with
// too long a path, is ignored: its content belongs to the outer folder.
func (n *Node) within(path string) string {
	name := n.folderName()
	if name == "" || len(path)+len(name) > maxPath {
		return path
	}
	if path != "" {
		path += "/"
	}
	return path + escapePath.Replace(name)
}

// Limits against lists whose nested folders have paths many times the size of the list, and whose
// feeds are in all folders.
const (
	maxPath       = 1000 // bytes, before escaping
	maxCategories = 1000 // categories of one feed
)

var escapePath = strings.NewReplacer(`\`, `\\`, `/`, `\/`)

// JoinPath joins the names of nested folders with '/'. A '/' in a name is written '\/'.
func JoinPath(names []string) string {
	elements := make([]string, 0, len(names))
	for _, n := range names {
		if n = fold(n); n != "" {
			elements = append(elements, escapePath.Replace(n))
		}
	}
	return strings.Join(elements, "/")
}

var (
	// a name in a path, escaped
	pathElement = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)(?:\\.|[^/])+`) })
	escaped     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)\\(.)`) })
)

// SplitPath splits a path that [JoinPath] returned.
func SplitPath(path string) []string {
	var names []string
	for _, element := range pathElement().FindAllString(path, -1) {
		if n := fold(escaped().ReplaceAllString(element, "$1")); n != "" {
			names = append(names, n)
		}
	}
	return names
}

// Merge adds outlines, folders, elements of the head and attributes of the root that only o has. It
// does not add a feed that the same folder has, or an outline that is equal to an existing one.
func (d *Document) Merge(o *Document) {
	for _, a := range o.root.Attrs {
		if d.root.attr(a.Name) == nil {
			d.root.Attrs = append(d.root.Attrs, a)
		}
	}
	head := d.head()
	named := map[string]bool{}
	for _, n := range head.Children {
		named[strings.ToLower(n.Name)] = true
	}
	for _, n := range lacking(head.Children, o.head().Children) {
		if name := strings.ToLower(n.Name); !n.isSpace() && (name == "" || !named[name]) {
			named[name] = true
			head.Children = append(head.Children, n)
		}
	}
	mergeOutlines(d.body(), o.body())
	rest := func(n *Node) bool { return n.is("head") || n.is("body") }
	d.root.Children = append(d.root.Children, lacking(slices.DeleteFunc(slices.Clone(d.root.Children), rest),
		slices.DeleteFunc(slices.Clone(o.root.Children), rest))...)
	d.prolog = append(d.prolog, lacking(d.prolog, o.prolog)...)
}

// lacking returns the nodes of from that are not in to, without duplicates.
func lacking(to, from []*Node) []*Node {
	have := make(map[string]bool, len(to))
	for _, n := range to {
		have[n.signature()] = true
	}
	var out []*Node
	for _, n := range from {
		if s := n.signature(); !have[s] {
			have[s] = true
			out = append(out, n)
		}
	}
	return out
}

func mergeOutlines(to, from *Node) {
	// A search among the siblings of each outline would be quadratic; lists of ten thousand feeds
	// exist.
	have := map[string]*Node{}
	key := func(n *Node) string {
		switch {
		case !n.is("outline"):
			return "raw\x00" + n.signature()
		case n.feedURL() != "":
			return "feed\x00" + n.feedURL()
		case n.child("outline") != nil:
			return "folder\x00" + n.folderName()
		}
		return "leaf\x00" + n.signature()
	}
	for _, n := range to.Children {
		if k := key(n); have[k] == nil {
			have[k] = n
		}
	}
	for _, n := range from.Children {
		if n.isSpace() {
			continue
		}
		k := key(n)
		old := have[k]
		switch {
		case old == nil:
			to.Children = append(to.Children, n)
			have[k] = n
		case n.is("outline") && old != n:
			for _, a := range n.Attrs {
				if old.attr(a.Name) == nil {
					old.Attrs = append(old.Attrs, a)
				}
			}
			mergeOutlines(old, n)
		}
	}
}

// Update changes the document to list exactly the given feeds, and returns it. It removes outlines
// of other feeds, and folders that become empty. An outline of a given feed stays, with all its
// attributes, if the feed is in that folder; for other categories of the feed it adds outlines.
// HTMLURL and Description fill in missing attributes of an outline. Title, else Name, becomes its text
// and its title. URLs are compared by the result of key.
func (d *Document) Update(feeds []Feed, key func(string) string) *Document {
	u := &update{key: key, want: make(map[string]*listed, 2*len(feeds)), body: d.body()}
	all := make([]listed, len(feeds))
	for i := range feeds {
		all[i] = listed{Feed: &feeds[i], places: map[string]bool{}}
		if id := feeds[i].ID; id != "" {
			u.want[key(id)] = &all[i]
		}
	}
	for i := range feeds {
		u.want[key(feeds[i].URL)] = &all[i]
	}
	d.walk(func(n *Node, path string) {
		if f := u.feed(n); f != nil {
			f.like = cmp.Or(f.like, n)
			if path != "" && slices.Contains(f.Categories, path) {
				f.places[path] = true
			}
		}
	})
	u.prune(u.body, "")
	u.folders = map[string]*Node{"": u.body}
	d.walk(func(n *Node, path string) {
		if n.feedURL() == "" {
			path = n.within(path)
			u.folders[path] = cmp.Or(u.folders[path], n)
		}
	})
	for i := range all {
		u.add(&all[i])
		if all[i].Paused {
			d.root.set("xmlns:lektor", namespace)
		}
	}
	return d
}

// update is the state of one [Document.Update].
type update struct {
	key     func(string) string
	want    map[string]*listed // by key of URL and ID
	body    *Node
	folders map[string]*Node // by path, after the removals
}

// listed is a feed to list.
type listed struct {
	*Feed
	places map[string]bool // paths of the folders where it has an outline that stays
	like   *Node           // an existing outline of the feed, or nil
}

// feed returns the feed of an outline, nil if the outline is a folder or must be removed.
func (u *update) feed(n *Node) *listed {
	if url := n.feedURL(); url != "" {
		return u.want[u.key(url)]
	}
	return nil
}

// prune removes the outlines below n, at path here, that must not stay.
func (u *update) prune(n *Node, here string) {
	var kept []*Node
	for _, c := range n.Children {
		switch f := u.feed(c); {
		case !c.is("outline"):
			kept = append(kept, c)
		case c.feedURL() == "":
			had := c.child("outline") != nil
			u.prune(c, c.within(here))
			if !had || c.child("outline") != nil {
				kept = append(kept, c)
			}
		case f != nil && f.belongs(here):
			u.prune(c, here)
			f.places[here] = true
			f.fill(c, u.key)
			kept = append(kept, c)
		default:
			// Keep the outlines below a removed feed.
			u.prune(c, here)
			for _, below := range c.Children {
				if below.is("outline") {
					kept = append(kept, below)
				}
			}
		}
	}
	n.Children = kept
}

// belongs reports whether an outline of the feed may stay in a folder. At the top level one may
// stay besides those in folders.
func (f *listed) belongs(path string) bool {
	return slices.Contains(f.Categories, path) || path == "" && (len(f.Categories) == 0 || len(f.places) > 0)
}

// add adds the missing outlines of a feed.
func (u *update) add(f *listed) {
	categories := f.Categories
	if len(categories) == 0 {
		categories = []string{""}
	}
	for _, c := range categories {
		if f.places[c] {
			continue
		}
		n := &Node{Name: "outline"}
		if f.like != nil {
			n.Attrs = slices.Clone(f.like.Attrs)
			n.Children = slices.DeleteFunc(slices.Clone(f.like.Children), func(c *Node) bool { return c.is("outline") })
		}
		f.fill(n, u.key)
		parent := u.folder(c)
		parent.Children = append(parent.Children, n)
	}
}

// folder returns the folder at a path, and creates it if necessary.
func (u *update) folder(path string) *Node {
	names := SplitPath(path)
	parent := u.body
	for i, name := range names {
		p := JoinPath(names[:i+1])
		n := u.folders[p]
		if n == nil {
			n = &Node{Name: "outline", Attrs: []Attr{{"text", name}}}
			parent.Children = append(parent.Children, n)
			u.folders[p] = n
		}
		parent = n
	}
	return parent
}

// fill adds the missing attributes to an outline.
func (f *Feed) fill(n *Node, key func(string) string) {
	// OPML 2.0 requires text, and some readers show title.
	name := cmp.Or(f.Title, f.Name, fold(n.get("text")), fold(n.get("title")), f.URL)
	n.set("text", name)
	n.set("title", name)
	if n.attr("type") == nil {
		n.set("type", "rss")
	}
	if key(n.feedURL()) != key(f.URL) {
		n.set("xmlUrl", f.URL)
	}
	n.Attrs = slices.DeleteFunc(n.Attrs, func(a Attr) bool { return strings.EqualFold(a.Name, pausedAttr) })
	if f.Paused {
		n.set(pausedAttr, "on")
	}
	if f.HTMLURL != "" && n.attr("htmlUrl") == nil {
		n.set("htmlUrl", f.HTMLURL)
	}
	if f.Description != "" && n.attr("description") == nil {
		n.set("description", fold(f.Description))
	}
}

// Bytes returns the document in UTF-8, without characters that XML cannot represent.
func (d *Document) Bytes() []byte {
	var b bytes.Buffer
	b.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")
	for _, n := range d.prolog {
		b.WriteString(n.Raw + "\n")
	}
	d.root.write(&b, 0)
	return bytes.Map(xmltext.Writable, b.Bytes())
}

// write writes an element with one child per line, unless it contains text.
func (n *Node) write(b *bytes.Buffer, depth int) {
	indent := func(depth int) { b.WriteString(strings.Repeat("  ", depth)) }
	indent(depth)
	mixed := n.Name == "" || slices.ContainsFunc(n.Children, func(c *Node) bool { return c.isText() && !c.isSpace() })
	kids := slices.ContainsFunc(n.Children, func(c *Node) bool { return !c.isSpace() })
	if mixed || !kids {
		n.writeInline(b)
		b.WriteByte('\n')
		return
	}
	n.writeStart(b)
	b.WriteString(">\n")
	for _, c := range n.Children {
		if !c.isSpace() {
			c.write(b, depth+1)
		}
	}
	indent(depth)
	b.WriteString("</" + n.Name + ">\n")
}

func (n *Node) writeStart(b *bytes.Buffer) {
	b.WriteString("<" + n.Name)
	for _, a := range n.Attrs {
		b.WriteString(" " + a.Name + `="` + xmltext.Attr(markup.Clean(a.Value)) + `"`)
	}
}

func (n *Node) writeInline(b *bytes.Buffer) {
	switch {
	case n.Raw != "":
		b.WriteString(n.Raw)
	case n.Name == "":
		b.WriteString(xmltext.Text(markup.Clean(n.Text)))
	case len(n.Children) == 0:
		n.writeStart(b)
		b.WriteString("/>")
	default:
		n.writeStart(b)
		b.WriteByte('>')
		for _, c := range n.Children {
			c.writeInline(b)
		}
		b.WriteString("</" + n.Name + ">")
	}
}

func (n *Node) is(name string) bool { return n.Name != "" && strings.EqualFold(n.Name, name) }
func (n *Node) isText() bool        { return n.Name == "" && n.Raw == "" }
func (n *Node) isSpace() bool       { return n.isText() && strings.TrimSpace(n.Text) == "" }

func (n *Node) child(name string) *Node {
	if n == nil {
		return nil
	}
	for _, c := range n.Children {
		if c.is(name) {
			return c
		}
	}
	return nil
}

func (n *Node) attr(name string) *Attr {
	for i := range n.Attrs {
		if strings.EqualFold(n.Attrs[i].Name, name) {
			return &n.Attrs[i]
		}
	}
	return nil
}

func (n *Node) get(name string) string {
	if a := n.attr(name); a != nil {
		return a.Value
	}
	return ""
}

func (n *Node) set(name, value string) {
	if a := n.attr(name); a != nil {
		a.Value = value
		return
	}
	n.Attrs = append(n.Attrs, Attr{name, value})
}

// signature returns a string that is equal for nodes with the same output.
func (n *Node) signature() string {
	var b bytes.Buffer
	n.write(&b, 0)
	return b.String()
}

// fold returns s on one line.
func fold(s string) string { return strings.Join(strings.Fields(s), " ") }
