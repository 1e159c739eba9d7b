package viewer

import (
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/spill"
)

// pile is entries as they are published, oldest first, of which few are in memory at a
// time.
type pile struct {
	*spill.Pile
	b spill.Encoder
}

// add adds an entry, with all that [viewer.entryOf] gives it: the form is for this run.
func (p *pile) add(e *feedconv.Entry) {
	b := &p.b
	*b = (*b)[:0]
	for _, s := range []string{
		e.ID, e.GUID, e.Link, e.Title, e.Content, e.ContentType, e.Summary, e.SummaryType, e.Comments, e.Image, e.Language, e.Rights,
	} {
		b.Text(s)
	}
	b.Uint(uint64(len(e.Links)))
	for _, l := range e.Links {
		for _, s := range []string{l.Rel, l.Href, l.Type, l.Title} {
			b.Text(s)
		}
	}
	for _, list := range [][]feedconv.Person{e.Authors, e.Contributors} {
		p.persons(list)
	}
	for _, t := range []time.Time{e.Published, e.Updated} {
		b.Time(t.UTC())
	}
	b.Texts(e.Categories)
	b.Uint(uint64(len(e.Terms)))
	for _, c := range e.Terms {
		for _, s := range []string{c.Name, c.Scheme, c.Label, c.Term} {
			b.Text(s)
		}
	}
	b.Uint(uint64(len(e.Enclosures)))
	for _, enc := range e.Enclosures {
		b.Text(enc.URL)
		b.Text(enc.Type)
		b.Int(enc.Length)
	}
	b.Int(int64(e.Duration))
	b.Int(int64(e.Episode))
	b.Int(int64(e.Season))
	if b.Bool(e.Source != nil); e.Source != nil {
		s := e.Source
		for _, text := range []string{s.ID, s.Title, s.URL, s.Link, s.Description, s.Copyright, s.Image} {
			b.Text(text)
		}
		b.Time(s.Updated.UTC())
		p.persons(s.Authors)
	}
	p.Add(*b)
}

// persons adds a list of persons to the entry.
func (p *pile) persons(list []feedconv.Person) {
	p.b.Uint(uint64(len(list)))
	for _, a := range list {
		p.b.Text(a.Name)
		p.b.Text(a.Email)
		p.b.Text(a.URL)
	}
}

// personsFrom reads what persons adds.
func personsFrom(in *spill.Decoder) (list []feedconv.Person) {
	for range in.Uint() {
		list = append(list, feedconv.Person{Name: in.Text(), Email: in.Text(), URL: in.Text()})
	}
	return list
}

// entry gives an entry by its number. The error is that of the file.
func (p *pile) entry(i int) (*feedconv.Entry, error) {
	text, err := p.Text(i)
	if err != nil {
		return nil, err
	}
	in := spill.NewDecoder(text)
	e := &feedconv.Entry{}
	for _, s := range []*string{
		&e.ID, &e.GUID, &e.Link, &e.Title, &e.Content, &e.ContentType, &e.Summary, &e.SummaryType, &e.Comments, &e.Image, &e.Language, &e.Rights,
	} {
		*s = in.Text()
	}
	for range in.Uint() {
		e.Links = append(e.Links, feedconv.Link{Rel: in.Text(), Href: in.Text(), Type: in.Text(), Title: in.Text()})
	}
	for _, list := range []*[]feedconv.Person{&e.Authors, &e.Contributors} {
		*list = personsFrom(in)
	}
	for _, t := range []*time.Time{&e.Published, &e.Updated} {
		*t = in.Time()
	}
	e.Categories = in.Texts()
	for range in.Uint() {
		e.Terms = append(e.Terms, feedconv.Category{Name: in.Text(), Scheme: in.Text(), Label: in.Text(), Term: in.Text()})
	}
	for range in.Uint() {
		e.Enclosures = append(e.Enclosures, feedconv.Enclosure{URL: in.Text(), Type: in.Text(), Length: in.Int()})
	}
	e.Duration, e.Episode, e.Season = time.Duration(in.Int()), int(in.Int()), int(in.Int())
	if in.Bool() {
		e.Source = &feedconv.Source{
			ID: in.Text(), Title: in.Text(), URL: in.Text(), Link: in.Text(), Description: in.Text(), Copyright: in.Text(), Image: in.Text(),
			Updated: in.Time(), Authors: personsFrom(in),
		}
	}
	return e, nil
}
