#!/bin/sh
# ruby-feedparser, the parser of feed2imap
# Guess: all agrees
# Seen: a title loses what looks like a tag, a missing one is the date; no enclosures in Atom
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb ruby-feedparser 0.11.2-1
cat >read.rb <<'R'
require "feedparser"
require "cgi"
FeedParser::Feed.new(File.read(ARGV[0])).items.each_with_index do |e, n|
	say = ->(name, v) { puts "#{n + 1} #{name}\t#{v}" }
	say["title", e.title]
	say["link", e.link]
	say["date", e.date.utc.strftime("%FT%TZ")]
	e.creators.each { |c| say["author", c] }
	e.categories.each { |c| say["category", c] }
	e.enclosures.each { |x| say["enclosure", "#{x[0]} #{x[2]} #{x[1]}"] }
	say["text", CGI.unescapeHTML(e.content.gsub(/<[^>]*>/, ""))]
end
R
entries() { ruby read.rb "site/feed.$1"; }
known 'atom 2 title' 'Fish & chips: 5 < 6' 'it removes what looks like a tag from a title that is text'
known 'atom 3 link' 'https://a.example/2.mp3?x=1&y=2' 'without another link it takes the audio for the article'
known 'atom 3 enclosure' '' 'it reads enclosures in RSS only'
known 'rss 1 title' 'Tue, 03 Feb 2026 00:00:00 GMT' 'an entry without a title gets its date for one'
known 'rss 2 title' 'Fish & chips: 5 < 6' 'it removes what looks like a tag from a title that is text'
known 'rss 3 author' Bob 'it has one author'
reads 'atom rss' 'title link date author category enclosure text'
row
