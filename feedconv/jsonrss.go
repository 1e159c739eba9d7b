package feedconv

import (
	"cmp"
	"strings"
)

// rssInJSON maps RSS 2.0 written in JSON: elements and attributes are members,
// an element that repeats is an array, and text beside attributes is the
// member "#value" or "#text".
func (d *jsonDoc) rssInJSON(rss jsonValue) {
	f := d.feed
	f.Format = RSSInJSON
	channel := firstElement(rss.get("channel"))
	var items jsonValue
	var published, updated []string
	channel.fields(func(name string, v jsonValue) bool {
		switch name {
		case "title":
			f.Title = titleText(elementText(v), true)
		case "link":
			f.Link = d.url(elementText(v))
		case "description":
			f.Description = PlainText(elementText(v), typeHTML)
		case "language":
			f.Language = elementText(v)
		case "copyright":
			f.Copyright = PlainText(elementText(v), typeHTML)
		case "generator":
			f.Generator = Generator{Name: titleText(elementText(v), true)}
		case "pubDate":
			published = append(published, elementText(v))
		case "lastBuildDate":
			updated = append([]string{elementText(v)}, updated...)
		case "dc:date":
			updated = append(updated, elementText(v))
		case "ttl":
			f.TTL = ttl(elementText(v))
		case "skipHours":
			f.SkipHours = skipHours(elementTexts(v.get("hour")))
		case "skipDays":
			f.SkipDays = skipDays(elementTexts(v.get("day")))
		case "managingEditor", "author", "dc:creator", "itunes:author":
			f.Authors = append(f.Authors, parseAll(elementTexts(v))...)
		case "category":
			f.Categories = append(f.Categories, markupTexts(v)...)
		case "image":
			f.Image = d.url(elementText(v.get("url")))
		case "cloud", "source:cloud":
			v.list(d.cloud)
		case "atom:link":
			d.atomLinks(v)
		case "sy:updatePeriod":
			f.UpdateInterval = updateInterval(elementText(v), elementText(channel.get("sy:updateFrequency")))
		case "fh:complete":
			f.Complete = true
		case "fh:archive":
			f.Archive = true
		case "item":
			items = v
		}
		return true
	})
	f.Updated, _ = firstDate(updated)
	f.Published, _ = firstDate(published)
	items.each(func(item jsonValue) bool {
		return !item.isObject() || d.rssItem(item)
	})
}

// firstElement gives an element that may stand in an array.
func firstElement(v jsonValue) jsonValue {
	var first jsonValue
	v.each(func(e jsonValue) bool { first = e; return false })
	return first
}

// elementText gives the text of an element.
func elementText(v jsonValue) string {
	v = firstElement(v)
	if v.isObject() {
		v = v.get("#value", "#text", "_text", "$t", "_")
	}
	return v.scalar()
}

// elementTexts gives the texts of an element that may repeat.
func elementTexts(v jsonValue) []string {
	var out []string
	v.list(func(e jsonValue) { out = append(out, elementText(e)) })
	return out
}

// markupTexts is elementTexts for elements that may hold HTML.
func markupTexts(v jsonValue) []string {
	out := elementTexts(v)
	for i, s := range out {
		out[i] = titleText(s, true)
	}
	return out
}

// cloud reads a cloud with attributes, or the URL of one.
func (d *jsonDoc) cloud(v jsonValue) {
	if c := cloudOf(func(name string) string { return v.get(name).scalar() }, elementText(v)); c.Domain != "" {
		d.feed.Clouds = append(d.feed.Clouds, c)
	}
}

func (d *jsonDoc) atomLinks(v jsonValue) {
	v.list(func(l jsonValue) {
		if href := d.url(l.get("href").scalar()); href != "" {
			d.feed.Links = append(d.feed.Links, Link{
				Rel: linkRel(l.get("rel").scalar()), Href: href, Type: cleanLine(l.get("type").scalar()),
				Title: titleText(l.get("title").scalar(), false),
			})
		}
	})
}

func (d *jsonDoc) rssItem(item jsonValue) bool {
	var x draft
	e := &x.entry
	var encoded, description text
	permalink := true
	item.fields(func(name string, v jsonValue) bool {
		switch name {
		case "title", "dc:title", "media:title":
			x.titles = append(x.titles, text{elementText(v), typeHTML})
		case "link":
			e.Link = d.url(elementText(v))
		case "guid":
			e.GUID = elementText(v)
			permalink = !strings.EqualFold(firstElement(v).get("isPermaLink").text(), "false")
		case "description":
			description = d.html(elementText(v)).lines()
		case "content:encoded":
			encoded = d.html(elementText(v)).lines()
		case "pubDate", "dcterms:issued":
			x.published = append(x.published, elementText(v))
		case "dcterms:modified", "dc:date":
			x.updated = append(x.updated, elementText(v))
		case "author", "dc:creator", "itunes:author":
			if len(e.Authors) == 0 || name == "dc:creator" {
				e.Authors = append(e.Authors, parseAll(elementTexts(v))...)
			}
		case "dc:contributor":
			e.Contributors = append(e.Contributors, parseAll(elementTexts(v))...)
		case "itunes:duration":
			e.Duration = duration(elementText(v))
		case "itunes:episode":
			e.Episode = number(elementText(v))
		case "itunes:season":
			e.Season = number(elementText(v))
		case "source":
			e.Source = &Source{Title: titleText(elementText(v), true), URL: d.url(firstElement(v).get("url").scalar())}
		case "category", "dc:subject":
			e.Categories = append(e.Categories, markupTexts(v)...)
		case "comments":
			e.Comments = d.url(elementText(v))
		case "enclosure", "media:content":
			v.list(func(a jsonValue) {
				e.Enclosures = append(e.Enclosures, enclosure(d.url(a.get("url").scalar()),
					a.get("type").scalar(), a.get("length", "fileSize").scalar()))
			})
		case "itunes:image", "media:thumbnail":
			v = firstElement(v)
			e.Image = d.url(cmp.Or(v.get("href", "url").scalar(), v.scalar()))
		}
		return true
	})
	x.contents = []text{encoded}
	x.summaries = []text{description}
	if u := d.url(e.GUID); e.Link == "" && permalink && (isWebURL(e.GUID) || strings.HasPrefix(e.GUID, "/") && isWebURL(u)) {
		e.Link = u
	}
	return d.add(&x)
}

// text gives a scalar, true and false included.
func (v jsonValue) text() string {
	if k := v.kind(); k == 't' || k == 'f' {
		return string(v)
	}
	return v.scalar()
}
