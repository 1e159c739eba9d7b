#!/bin/sh
# ROME, the parser of programs in Java
# Guess: all agrees
# Seen: all agrees but the second author in RSS
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb librome-java 1.12.2-1
command -v java >/dev/null || skip 'needs java'
cat >Read.java <<'J'
import com.rometools.rome.feed.synd.*;
import com.rometools.rome.io.*;
public class Read {
	static int n;
	static void say(String name, Object v) { System.out.println(n + " " + name + "\t" + (v == null ? "" : v)); }
	public static void main(String[] args) throws Exception {
		for (SyndEntry e : new SyndFeedInput().build(new XmlReader(new java.io.File(args[0]))).getEntries()) {
			n++;
			say("title", e.getTitle());
			say("link", e.getLink());
			say("id", e.getUri());
			say("date", e.getPublishedDate().toInstant());
			if (e.getAuthors().isEmpty()) say("author", e.getAuthor());
			for (SyndPerson a : e.getAuthors()) say("author", a.getName());
			for (SyndCategory c : e.getCategories()) say("category", c.getName());
			for (SyndEnclosure x : e.getEnclosures()) say("enclosure", x.getUrl() + " " + x.getType() + " " + x.getLength());
			SyndContent c = e.getContents().isEmpty() ? e.getDescription() : e.getContents().get(0);
			say("text", c.getValue().replaceAll("<[^>]*>", "").replace("&lt;", "<").replace("&gt;", ">"));
		}
	}
}
J
jars=/usr/share/java
entries() { java -cp "$jars/rome.jar:$jars/rome-utils.jar:$jars/jdom2.jar:$jars/slf4j-api.jar:$jars/slf4j-nop.jar" Read.java "site/feed.$1"; }
known 'rss 3 author' Bob 'it has one author in RSS'
reads 'atom rss' 'title link id date author category enclosure text'
row
