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
	channel := firstElement(rss.object().get("channel")).object()
	f.Title = titleText(channel.element("title"), true)
	f.Link = d.url(channel.element("link"))
	f.Description = PlainText(channel.element("description"), typeHTML)
	f.Language = channel.element("language")
	f.Copyright = PlainText(channel.element("copyright"), typeHTML)
	f.Generator = Generator{Name: titleText(channel.element("generator"), true)}
	f.Published, _ = firstDate([]string{channel.element("pubDate")})
	f.Updated, _ = firstDate([]string{channel.element("lastBuildDate"), channel.element("dc:date")})
	f.TTL = ttl(channel.element("ttl"))
	f.UpdateInterval = updateInterval(channel.element("sy:updatePeriod"), channel.element("sy:updateFrequency"))
	f.SkipHours = skipHours(elementTexts(channel.get("skipHours").object().get("hour")))
	f.SkipDays = skipDays(elementTexts(channel.get("skipDays").object().get("day")))
	f.Image = d.url(channel.get("image").object().element("url"))
	f.Categories = markupTexts(channel.get("category"))
	for _, v := range channel.all("managingEditor", "author", "dc:creator", "itunes:author") {
		f.Authors = append(f.Authors, parseAll(elementTexts(v))...)
	}
	for _, v := range channel.all("cloud", "source:cloud") {
		v.list(d.cloud)
	}
	channel.get("atom:link").list(d.atomLink)
	f.Complete, f.Archive = len(channel.all("fh:complete")) > 0, len(channel.all("fh:archive")) > 0
	for item := range channel.get("item").each {
		if item.isObject() && !d.rssItem(item.object()) {
			break
		}
	}
}

// firstElement returns an element that may stand in an array.
func firstElement(v jsonValue) jsonValue {
	for e := range v.each {
		return e
	}
	return nil
}

// elementText returns the text of an element.
func elementText(v jsonValue) string {
	v = firstElement(v)
	if v.isObject() {
		return v.text("#value", "#text", "_text", "$t", "_")
	}
	return v.scalar()
}

// element returns the text of a member that is an element.
func (o jsonObject) element(name string) string { return elementText(o.get(name)) }

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
	o := v.object()
	if c := cloudOf(func(name string) string { return o.text(name) }, elementText(v)); c.Domain != "" {
		d.feed.Clouds = append(d.feed.Clouds, c)
	}
}

func (d *jsonDoc) atomLink(v jsonValue) {
	l := v.object()
	d.feed.link(Link{
		Rel: linkRel(l.text("rel")), Href: d.url(l.text("href")), Type: cleanLine(l.text("type")), Title: titleText(l.text("title"), false),
	})
}

func (d *jsonDoc) rssItem(item jsonObject) bool {
	var x draft
	e := &x.entry
	for _, v := range item.all("title", "dc:title", "media:title") {
		x.titles = append(x.titles, text{elementText(v), typeHTML})
	}
	e.Link = d.url(item.element("link"))
	e.GUID = item.element("guid")
	x.summaries = []text{d.html(item.element("description")).lines()}
	x.contents = []text{d.html(item.element("content:encoded")).lines()}
	for _, v := range item.all("pubDate", "dcterms:issued") {
		x.published = append(x.published, elementText(v))
	}
	for _, v := range item.all("dcterms:modified", "dc:date") {
		x.updated = append(x.updated, elementText(v))
	}
	for _, m := range item {
		switch m.name {
		case "author", "dc:creator", "itunes:author":
			if len(e.Authors) == 0 || m.name == "dc:creator" {
				e.Authors = append(e.Authors, parseAll(elementTexts(m.value))...)
			}
		}
	}
	e.Contributors = parseAll(elementTexts(item.get("dc:contributor")))
	e.Duration = duration(item.element("itunes:duration"))
	e.Episode, e.Season = number(item.element("itunes:episode")), number(item.element("itunes:season"))
	if v := item.get("source"); v != nil {
		e.Source = &Source{Title: titleText(elementText(v), true), URL: d.url(firstElement(v).text("url"))}
	}
	for _, v := range item.all("category", "dc:subject") {
		e.Categories = append(e.Categories, markupTexts(v)...)
	}
	e.Comments = d.url(item.element("comments"))
	for _, v := range item.all("enclosure", "media:content") {
		v.list(func(v jsonValue) {
			a := v.object()
			e.Enclosures = append(e.Enclosures, enclosure(d.url(a.text("url")), a.text("type"), a.text("length", "fileSize")))
		})
	}
	for _, v := range item.all("itunes:image", "media:thumbnail") {
		v = firstElement(v)
		e.Image = d.url(cmp.Or(v.text("href", "url"), v.scalar()))
	}
	permalink := firstElement(item.get("guid")).object().get("isPermaLink")
	if u := d.url(e.GUID); e.Link == "" && strings.Trim(strings.ToLower(string(permalink)), `"`) != "false" &&
		(isWebURL(e.GUID) || strings.HasPrefix(e.GUID, "/") && isWebURL(u)) {
		e.Link = u
	}
	return d.add(&x)
}
