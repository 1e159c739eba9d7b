package feedconv

import (
	"cmp"
	"strings"

	"github.com/lektordir/lektor/feedconv/internal/rawjson"
	"github.com/lektordir/lektor/internal/text/markup"
)

// rssInJSON maps RSS 2.0 written in JSON: elements and attributes are members,
// an element that repeats is an array, and text beside attributes is the
// member "#value" or "#text".
func (d *jsonDoc) rssInJSON(rss rawjson.Value) {
	f := d.feed
	f.Format = RSSInJSON
	channel := firstElement(rss.Object().Get("channel")).Object()
	f.Title = titleText(element(channel, "title"))
	f.Link = d.url(element(channel, "link"))
	f.Description = text{element(channel, "description"), markup.TypeHTML}.plain()
	f.Language = element(channel, "language")
	f.Copyright = PlainText(element(channel, "copyright"), markup.TypeHTML)
	f.Generator = Generator{Name: titleText(element(channel, "generator"))}
	f.PubDate, _ = firstDate([]string{element(channel, "pubDate")})
	f.Updated, _ = firstDate([]string{element(channel, "lastBuildDate"), element(channel, "dc:date")})
	f.TTL = ttl(element(channel, "ttl"))
	f.UpdateInterval = updateInterval(element(channel, "sy:updatePeriod"), element(channel, "sy:updateFrequency"))
	f.SkipHours = skipHours(elementTexts(channel.Get("skipHours").Object().Get("hour")))
	f.SkipDays = skipDays(elementTexts(channel.Get("skipDays").Object().Get("day")))
	f.Image = d.url(element(channel.Get("image").Object(), "url"))
	f.Categories = markupTexts(channel.Get("category"))
	for _, v := range channel.All("managingEditor", "author", "dc:creator", "itunes:author") {
		f.Authors = append(f.Authors, parseAll(elementTexts(v))...)
	}
	for _, v := range channel.All("cloud", "source:cloud") {
		v.List(maxList, d.cloud)
	}
	channel.Get("atom:link").List(maxList, d.atomLink)
	f.Complete, f.Archive = len(channel.All("fh:complete")) > 0, len(channel.All("fh:archive")) > 0
	for item := range channel.Get("item").Each {
		if item.IsObject() && !d.rssItem(item.Object()) {
			break
		}
	}
}

// firstElement returns an element that may stand in an array.
func firstElement(v rawjson.Value) rawjson.Value {
	for e := range v.Each {
		return e
	}
	return nil
}

// elementText returns the text of an element.
func elementText(v rawjson.Value) string {
	v = firstElement(v)
	if v.IsObject() {
		return v.Text("#value", "#text", "_text", "$t", "_")
	}
	return v.Scalar()
}

// element returns the text of a member that is an element.
func element(o rawjson.Object, name string) string { return elementText(o.Get(name)) }

// elementTexts returns the texts of an element that may repeat.
func elementTexts(v rawjson.Value) []string {
	var out []string
	v.List(maxList, func(e rawjson.Value) { out = append(out, elementText(e)) })
	return out
}

// markupTexts is elementTexts for elements that may hold HTML.
func markupTexts(v rawjson.Value) []string {
	out := elementTexts(v)
	for i, s := range out {
		out[i] = titleText(s)
	}
	return out
}

// cloud reads a cloud with attributes, or the URL of one.
func (d *jsonDoc) cloud(v rawjson.Value) {
	o := v.Object()
	if c := cloudOf(func(name string) string { return o.Text(name) }, elementText(v)); c.Domain != "" {
		d.feed.Clouds = append(d.feed.Clouds, c)
	}
}

func (d *jsonDoc) atomLink(v rawjson.Value) {
	l := v.Object()
	d.feed.link(Link{
		Rel: linkRel(l.Text("rel")), URL: d.url(l.Text("href")), Type: markup.CleanLine(l.Text("type")),
		Title: oneLine(l.Text("title")),
	})
}

func (d *jsonDoc) rssItem(item rawjson.Object) bool {
	var x draft
	e := &x.entry
	for _, v := range item.All("title", "dc:title", "media:title") {
		x.titles = append(x.titles, text{elementText(v), markup.TypeHTML})
	}
	e.Link = d.url(element(item, "link"))
	e.GUID = element(item, "guid")
	x.summaries = []text{text{element(item, "description"), markup.TypeHTML}.lines()}
	x.contents = []text{text{element(item, "content:encoded"), markup.TypeHTML}.lines()}
	for _, v := range item.All("pubDate", "dcterms:issued") {
		x.published = append(x.published, elementText(v))
	}
	for _, v := range item.All("dcterms:modified", "dc:date") {
		x.updated = append(x.updated, elementText(v))
	}
	for _, m := range item {
		switch m.Name {
		case "author", "dc:creator", "itunes:author":
			if len(e.Authors) == 0 || m.Name == "dc:creator" {
				e.Authors = append(e.Authors, parseAll(elementTexts(m.Value))...)
			}
		}
	}
	e.Contributors = parseAll(elementTexts(item.Get("dc:contributor")))
	e.Duration = duration(element(item, "itunes:duration"))
	e.Episode, e.Season = number(element(item, "itunes:episode")), number(element(item, "itunes:season"))
	if v := item.Get("source"); v != nil {
		e.Source = &Source{Title: titleText(elementText(v)), URL: d.url(firstElement(v).Text("url"))}
	}
	for _, v := range item.All("category", "dc:subject") {
		e.Categories = append(e.Categories, markupTexts(v)...)
	}
	e.Comments = d.url(element(item, "comments"))
	for _, v := range item.All("enclosure", "media:content") {
		v.List(maxList, func(v rawjson.Value) {
			a := v.Object()
			e.Enclosures = append(e.Enclosures, enclosure(d.url(a.Text("url")), a.Text("type"),
				a.Text("length", "fileSize")))
		})
	}
	for _, v := range item.All("itunes:image", "media:thumbnail") {
		v = firstElement(v)
		e.Image = d.url(cmp.Or(v.Text("href", "url"), v.Scalar()))
	}
	permalink := firstElement(item.Get("guid")).Object().Get("isPermaLink")
	if u := d.url(e.GUID); e.Link == "" && strings.Trim(strings.ToLower(string(permalink)), `"`) != "false" &&
		(markup.IsWebURL(e.GUID) || strings.HasPrefix(e.GUID, "/") && markup.IsWebURL(u)) {
		e.Link = u
	}
	return d.add(&x)
}
