package feedsync

import (
	"bytes"
	"errors"
	"slices"
)

// AppendText appends an item as it would stand in the document: the element, with the
// namespaces declared that the document does not bind.
func (d *Document) AppendText(b []byte, it *Item) []byte {
	if it.placed || it.Children() > 0 {
		it = it.clone()
		it.placed, it.circle = false, false
	}
	w := &writer{b: b}
	w.item(it, d.outward())
	return w.b
}

// outward gives the scope with the innermost binding last; in a document's it is the
// first.
func (d *Document) outward() []binding {
	scope := slices.Clone(d.scope)
	slices.Reverse(scope)
	return scope
}

// Read reads an item of its text, as [Document.Text] gives it.
func (d *Document) Read(text []byte) (*Item, error) {
	root, container := "rss", "channel"
	if d.Kind == OPML {
		root, container = "opml", "body"
	}
	w := &writer{b: make([]byte, 0, len(text)+256)}
	w.b = append(append(w.b, '<'), root...)
	w.declare(d.outward(), nil)
	w.b = append(append(append(w.b, "><"...), container...), '>')
	w.b = append(w.b, text...)
	w.b = append(append(append(append(append(w.b, "</"...), container...), "></"...), root...), '>')
	in, err := Parse(w.b)
	if err != nil {
		return nil, err
	}
	if in.Len() != 1 || len(in.Problems) > 0 {
		return nil, errors.New("it is not one item")
	}
	return in.Items()[0], nil
}

// Frame gives what stands before the items of a document and behind them. Only in RSS
// is anything between them put before them.
func (d *Document) Frame() (before, after []byte) {
	w := &writer{sharing: d.Sharing, raw: d.sharing}
	scope := d.outward()
	for _, k := range d.head {
		w.kid(k, nil, scope)
	}
	for _, k := range d.kids {
		if !k.isItem() && (k.item != nil || len(trim(k.raw)) > 0) {
			w.kid(k, nil, scope)
		}
	}
	if !bytes.HasSuffix(w.b, newline) {
		w.b = append(w.b, newline...)
	}
	before, w.b = w.b, nil
	for _, k := range d.tail {
		w.kid(k, nil, scope)
	}
	return before, w.b
}

// SameScope tells whether prefixes mean the same in two documents, so that items go
// from one to the other as they are.
func (d *Document) SameScope(o *Document) bool { return slices.Equal(d.scope, o.scope) }

// Source gives an item as it was read, nil for one that was made or changed.
func (it *Item) Source() []byte { return it.source }
