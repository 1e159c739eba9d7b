package manual

// These are reasons why the text of an example is not run.
const (
	picture = "shows what a directory holds"
	grammar = "a grammar; feeds of ESS and NNO are tested against it where they are read"
	sample  = "a document, which is read by the shell beside it"
)

// allSteps has a step for every example of every page, in order. In the shell of a step, $D is
// the lektor-dir, $example a file with the text, and $root the directory of the project.
var allSteps = map[string][]step{
	"README.md":             readme,
	"lektor.7":              introduction,
	"lektor-dir.5":          directory,
	"lektor-state.5":        nil, // no examples
	"lektor-fetch.1":        fetcher,
	"lektor-view.1":         viewer,
	"lektor-view-publish.1": publishing,
	"lektor-view-rules.1":   rules,
	"lektor-view-save.1":    saving,
	"lektor-view-tui.1":     tui,
	"lektor-query.7":        queries,
	"lektor-cloudd.1":       cloud,
	"lektor-ess.1":          notices,
	"lektor-share.1":        sharing,
	"lektor-serve.1":        serve,
	"lektor-pages.1":        pages,
	"lektor-import.1":       importing,
	"lektor-article.1":      articles,
	"ess.5":                 essFormat,
	"nno.5":                 nnoFormat,
}

// targets checks that every line of an example names a target of make.
const targets = `
grep '^make' "$example" | sed 's/#.*//; s,/usr/local,'"$HOME"',' | while read -r line; do
	(cd "$root" && eval "$line -n") >"$HOME/made"
	test -s "$HOME/made"
done`

var readme = []step{
	{starts: "make demo     # build, make a lektor-dir, fetch feeds over HTTP, show them", except: "takes minutes; the targets are looked at", needs: "make", then: targets},
	{
		starts: "lektor-fetch add https://example.org/",
		before: `echo '<opml version="2.0"><head/><body><outline text="More"><outline text="Com" xmlUrl="https://example.com/feed"/></outline></body></opml>' >subscriptions.opml`,
		then:   `test "$(lektor-fetch ls -o url | sort | tr '\n' ' ')" = "https://example.com/feed https://example.org/feed "; test "$(lektor-view count folder:more)" = "5 unread of 5"`,
	},
	{
		starts: "lektor-view ls", terminal: true,
		before: `lektor-view ls -o path --sort date feed:https://example.org/feed | head -n 1 | lektor-view mark --set S -`,
		// The first entry of the list is shown, and three are marked.
		out:  `(?s)\A ?1 N .*A frost\n.*\n ?9 N .*Title: A frost\n.*;2,S\n.1 .*A frost\n.2 .*A frost\n\z`,
		then: `test "$(lektor-view count is:read)" = "0 unread of 4"; test "$(lektor-view ls -a -o title author:wren since:2w frost | sort -u)" = "A frost"`,
	},
	{starts: "lektor-view tui", except: "it stays; tests of lektor-view have a person at it", then: `! lektor-view tui </dev/null`},
	{starts: "lektor-fetch", before: due, then: notDue},
	{
		starts: "# mark the three oldest as read",
		before: `lektor-view ls -o title,date --sort date | head -n 3 >"$HOME/oldest"`,
		out:    `\A(.*/cur/.*;2,S\n){3}\z`,
		then:   `test "$(lektor-view count is:unread)" = "3 unread of 3"; sort "$HOME/oldest" >"$HOME/a"; lektor-view ls -a -o title,date is:read | sort >"$HOME/b"; test -z "$(comm -23 "$HOME/a" "$HOME/b")"`,
	},
	{
		starts: "# download podcasts, from a timer; a download that was stopped continues",
		before: `lektor-fetch add --as-is --no-fetch --category Podcasts https://example.org/cast
echo | lektor-fetch put --feed-id https://example.org/cast --id urn:x:saved --title Saved --date 2026-01-02 --enclosure 'https://example.org/feed audio/mpeg 1'`,
		then: `test -s "$HOME/Podcasts/"*"/2026-01-02 Saved.mp3"; lektor-fetch rm --purge https://example.org/cast`,
	},
	{
		starts: "# deliver entries as mail for your mail program: each once, a feed is a thread",
		then:   `test "$(find "$HOME/Mail/feeds/new" "$HOME/Mail/feeds/cur" -type f | wc -l)" -eq "$(lektor-view count -o all)"`,
	},
	{
		starts: "# show a message for each entry that arrives",
		// The program may begin to watch only after the first entry, so make more.
		until: `echo Text | lektor-fetch put --feed-id urn:x:come --feed-name Come --id urn:x:$$ --title 'Come at last'
grep '^Come|Come at last$' "$HOME/notified"`,
		then: `rm "$HOME/notified"`,
	},
	{
		starts: "# deliver a document from another program", needs: "curl",
		before: `lektor-fetch rm --purge https://example.org/feed`,
		then:   `test "$(lektor-view count feed:https://example.org/feed)" = "5 unread of 5"`,
	},
	{
		starts: `cd "${LEKTORDIR:-${XDG_DATA_HOME:-$HOME/.local/share}/lektor}" || exit`, needs: "sha1sum",
		then: `lektor-view ls -o title feed:urn:x:disk | grep '^Disk at [0-9][0-9]:[0-9][0-9]$'; lektor-view ls -o content feed:urn:x:disk | grep /; lektor-fetch check; cd "$HOME/work"`,
	},
	{
		starts: `PATH=$PATH:$PWD/scripts    # lektor-clean removes control characters from text of feeds`,
		before: `cd "$HOME/work"; ln -s "$root/scripts" .
printf '\033]0;Mine\007 \302\2332J \342\200\256 \342\201\246 \302\302\233\233 Hostile' >hostile; lektor-fetch put --feed-id urn:x:hostile --id urn:x:hostile --title Hostile <hostile
cp hostile "$(lektor-view ls -o path feed:urn:x:hostile)/content"
lektor-view count -o unread >"$HOME/a"; { echo n; yes y | head -n 500; } >"$HOME/answers"`,
		given: `exec <"$HOME/answers"`,
		out:   `\A` + plain + `*Disk at ` + plain + `*Read\? \z`,
		then: `test "$(ls -d "$D"/new/*/* | wc -l)" -eq 1; test "$(lektor-view count -o all is:read)" -ge "$(($(cat "$HOME/a") - 1))"; lektor-fetch check; cd "$HOME/work"
echo y | sh "$example" >"$HOME/last"; test -z "$(ls -d "$D"/new/*/* 2>/dev/null)"
yes y | head -n 9 | sh "$example" >"$HOME/last" 2>&1; test ! -s "$HOME/last"; test ! -e "$D/cur/*"`,
	},
	{starts: "tmp/$feed/$unique/           an entry being written", except: picture, then: layout},
}

const (
	// plain is a character without an effect on a terminal.
	plain = `[^\x00-\x08\x0b-\x1f\x7f-\x{9f}\x{202a}-\x{202e}\x{2066}-\x{2069}]`
	// due makes the feeds due, and notDue succeeds after they were fetched.
	due    = `mkdir -p "$D/etc/fetch/due"; for h in $(lektor-fetch ls -o hash); do : >"$D/etc/fetch/due/$h"; done`
	notDue = `test -z "$(ls "$D/etc/fetch/due")"; test -z "$(lektor-fetch update --dry-run)"`
	// watched leaves due markers, and succeeds when all were taken.
	watched = `test -e "$HOME/left" || { ` + due + `; : >"$HOME/left"; }; test -z "$(ls "$D/etc/fetch/due")"`

	// broken subscribes to a feed that has ended.
	broken = `lektor-fetch add --as-is --no-fetch https://example.org/broken; lektor-fetch update https://example.org/broken || true`

	// layout checks the directories of a lektor-dir, and the mark of a read entry.
	layout = `
for d in tmp new cur src etc; do grep -q "^$d/" "$example"; test -d "$D/$d"; done
lektor-view ls -o path -a -n 1 | lektor-view mark -s S - | grep "^$D/cur/[0-9a-f]*/[^/;]*;2,F*S\$"`

	// archived checks the archives of flagged entries in the directory good. It publishes again
	// with fewer entries in a document, since fewer than a hundred entries are flagged.
	archived = `
lektor-view ls -a -o path | head -n 2 | lektor-view mark -s F -
sh "$example"
! ls good | grep archive-
test "$(grep -c '<entry>' good/index.atom)" = "$(lektor-view count -o flagged)"
sed 's/50/1/; s/archive good/archive one/' "$example" | sh
grep 'rel="prev-archive" href="https://me.example/good/archive-0' one/index.atom
test "$(cat one/index.atom one/archive-* | grep -c '<entry>')" = "$(lektor-view count -o flagged)"`

	// ruled makes a lektor-dir with the example as its rules, and with the entries of put.
	ruleLines = "lines of the file of rules, which are applied"
	ruled     = `
export LEKTORDIR="$HOME/ruled"
rm -rf "$LEKTORDIR"
put() {
	feed=$1 title=$2
	shift 2
	echo Text | lektor-fetch put --feed-id "$feed" --feed-name "$feed" --id "urn:x:$feed$title" --title "$title" "$@"
}
apply() {
	mkdir -p "$LEKTORDIR/etc/view"
	cat "$example" >"$LEKTORDIR/etc/view/rules"
	chmod go-w "$LEKTORDIR" "$LEKTORDIR/etc" "$LEKTORDIR/etc/view" "$LEKTORDIR/etc/view/rules"
	lektor-view rules check
	lektor-view rules apply
}`

	// old makes two old entries that were read a moment ago, one of them flagged.
	old = `
for n in 1 2; do
	echo | lektor-fetch put --feed-id urn:x:old --id "urn:x:$n" --title "Old $n" --date 2001-01-01T00:00:00Z | lektor-view mark -s S -
done | head -n 1 | lektor-view mark -s F -`
)

// introduction has the steps of lektor(7).
var introduction = []step{
	{
		starts: "lektor-fetch add https://example.com/blog/", terminal: true,
		out:  `(?s)5 N .*Fifth\n.*Title: A frost\n.*Title: Tea at noon\n`,
		then: `test "$(lektor-view ls -o title -a is:read)" = "Tea at noon"`,
	},
	{starts: "lektor-fetch", before: due, then: notDue},
	{starts: "lektor-fetch watch", until: watched},
	{starts: "lektor-fetch set https://example.com/feed categories News", then: `test "$(lektor-view count -o all folder:news)" = 5; lektor-fetch add --as-is --no-fetch --category News https://a.example/feed; test "$(lektor-fetch set https://a.example/feed categories)" = News; lektor-fetch rm --purge https://a.example/feed`},
	{
		starts: "lektor-fetch import --from newsboat",
		before: `mkdir ~/.newsboat; printf '%s\n' 'https://daringfireball.net/feed tech "~Fireball"' '"query:Tea:title =~ \"tea\""' >~/.newsboat/urls; : >~/.newsboat/cache.db`,
		then:   `test "$(lektor-view count folder:tech)" = "5 unread of 5"; test "$(lektor-fetch ls -o title | grep -c Fireball)" -eq 1; lektor-fetch rm --purge https://daringfireball.net/feed`,
	},
	{
		starts: "lektor-view ls -o path | head -n 3 | lektor-view mark --set S -", library: true,
		before: `lektor-view ls -o title | head -n 3 | sort >"$HOME/a"; lektor-view ls -o title -a is:read | sort >"$HOME/b"`,
		out:    `\A(.*/cur/.*;2,S\n){3}\z`,
		then:   `lektor-view ls -o title -a is:read | sort >"$HOME/c"; sort "$HOME/a" "$HOME/b" | cmp - "$HOME/c"`,
	},
	{
		starts: "lektor-view ls -o path --sort date feed:planet |", library: true,
		out:  `(?s)Title: A Kernel story\n.*Title: Second\n.*Title: Third\n.*Third text\n`,
		then: `test "$(lektor-view count feed:planet)" = "0 unread of 5"`,
	},
	{
		starts: `cd "${LEKTORDIR:-${XDG_DATA_HOME:-$HOME/.local/share}/lektor}"`, library: true,
		out:  `(?m)\A(.*/cur/.*;2,S?k\n){2}\z`,
		then: `test "$(lektor-view ls -o title flag:k | sort | tr '\n' ,)" = 'A Kernel story,Old kernel,'`,
	},
	{starts: "lektor-view ls -a -o feed | sort | uniq -c | sort -rn | head -n 5", library: true, out: `(?s)\A *5 Planet\n *1 Podcast\n\z`},
	{starts: "lektor-view count --feeds -o '{{.unread}} {{.feed}}' | sort -rn", library: true, out: `\A3 Planet\n1 Podcast\n\z`},
	{starts: "lektor-view ls -o '{{range .enclosures}}{{.}} {{end}}' has:audio |", library: true, out: `\Acurl -O http://cast.example/4.mp3\n\z`},
	{
		starts: "lektor-view digest --keep --lines 2 | cat -s >digest.txt", library: true,
		out:  `\A *[1-9][0-9]+\n\z`,
		then: `grep -q 'A Kernel story' digest.txt; test "$(lektor-view count)" = "4 unread of 6"`,
	},
	{
		starts: "cat feed.xml | lektor-fetch deliver --id http://example.org/feed.xml", library: true,
		before: `echo '` + delivered + `' >feed.xml`,
		out:    `(?m)^N .*  Delivered +From a document$`,
	},
	{
		starts: `df -P / | lektor-fetch put --feed-id urn:example:disk \`, library: true,
		out: `(?s)Title: Disk space at .*Feed: Disk space\n.*\n\n.*/\n`,
	},
	{
		starts: "lektor-view ls -o path read:1y not:is:flagged >old", library: true,
		before: `lektor-view count -o all >"$HOME/a"`, // the example deletes entries that were just read, whatever their dates
		out:    `\A *0\n\z`,
		then: `test "$(lektor-view count -o all)" = "$(cat "$HOME/a")"
test "$(sed s/1y/now/ "$example" | sh)" -eq 1
test "$(lektor-view ls -o title is:read)" = 'Old and good'`,
	},
	{
		starts: "lektor-view ls -o path is:trashed | lektor-view rm --now -",
		before: `lektor-view count -o all >"$HOME/a"; lektor-view ls -a -n 1 -o path | lektor-view rm -; lektor-view ls is:trashed | grep .`,
		then:   `test -z "$(lektor-view ls is:trashed)"; test "$(($(lektor-view count -o all) + 1))" -eq "$(cat "$HOME/a")"`,
	},
	{
		starts: "lektor-share init ~/Sync/lektor && lektor-share sync",
		before: `lektor-fetch add --as-is --no-fetch https://example.com/feed`,
		then:   `ls ~/Sync/lektor/*/subscriptions.opml; test "$(cat ~/Sync/lektor/*/subscriptions.opml | grep -c example.com/feed)" -eq 1`,
	},
	{starts: "lektor-view publish --archive good --per-page 50", then: archived},
	{starts: `cd "${LEKTORDIR:-${XDG_DATA_HOME:-$HOME/.local/share}/lektor}"`, out: `(?s)\A[0-9.]+[KM]?[ \t]+\.\n.*[Ii]?[Uu]sed.*\n.*\d+.*\n\z`},
}

const delivered = `<?xml version="1.0"?>
<rss version="2.0"><channel><title>Delivered</title><link>http://example.org/</link><description>d</description>
<item><title>From a document</title><link>http://example.org/1</link><guid>http://example.org/1</guid><description>text</description></item>
</channel></rss>`

// directory has the steps of lektor-dir(5).
var directory = []step{
	{starts: "tmp/$feed/$unique/            an entry being written", except: picture, before: `lektor-fetch add https://example.org/feed`, then: layout},
	{starts: "$ printf http://example.com/rss.xml | sha1sum", then: `command -v sha1sum`},
	{
		starts: `cd "${LEKTORDIR:-${XDG_DATA_HOME:-$HOME/.local/share}/lektor}"`,
		before: `chart() {
	{
		echo '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><title>Chart</title><id>urn:x:chart</id><fh:complete/>'
		for n; do echo "<entry><title>$n</title><id>urn:x:$n</id></entry>"; done
		echo '</feed>'
	} | lektor-fetch deliver --id urn:x:chart
}
chart one two
chart three two`,
		given: `feed=$(printf urn:x:chart | sha1sum | cut -d ' ' -f 1)`,
		out:   `\A(new/[0-9a-f]{40}/\S+\n){2}\z`,
		then: `cd "$D"
test "$(feed=$(printf urn:x:chart | sha1sum | cut -d ' ' -f 1); export feed; sh "$example" | while read -r entry; do cat "$entry/title"; done | tr '\n' ' ')" = "three two "
test "$(ls new/*/*/title | wc -l)" -eq 7; test "$(lektor-view count feed:urn:x:chart)" = "2 unread of 2"
test "$(lektor-view ls -o title --sort rank feed:urn:x:chart | tr '\n' ' ')" = "three two "; test "$(lektor-view ls -o title is:withdrawn)" = one`,
	},
	{
		starts: `awk -F '\t' '$1 == "link" { print $2; exit }' extras`,
		before: `printf 'Content' | lektor-fetch put --feed-id urn:x:extras --id urn:x:1 --title One --link http://example.org/one \
    --category tea --category 'long walks' --enclosure 'http://example.org/1.mp3 audio/mpeg 12' --enclosure http://example.org/2.mp3
printf 'summary\ttwo\\nlines \\\\ here\n' >>"$(lektor-view ls -o path feed:urn:x:extras)/extras"
test "$(lektor-view ls -o '{{.summary}}' feed:urn:x:extras)" = 'two
lines \ here'`,
		given: `cd "$(lektor-view ls -o path feed:urn:x:extras)"`,
		out:   `\Ahttp://example.org/one\ntwo\nlines \\ here\nhttp://example.org/1.mp3\taudio/mpeg\t12\nhttp://example.org/2.mp3\t\t\n\z`,
	},
	{
		starts: `cd "${LEKTORDIR:-${XDG_DATA_HOME:-$HOME/.local/share}/lektor}"`,
		before: `echo | lektor-fetch put --feed-id urn:x:extras --id urn:x:2 --title Two --category tea | lektor-view mark -s S -`,
		out:    `\A *2 tea\n *1 long walks\n\z`,
	},
	{
		starts: `grep '^element.podcast:transcript' extras`,
		before: `printf 'element\tpodcast:person\tAnn\turl=http://example.org/no\nelement\tpodcast:transcript\t\turl=http://example.org/1.vtt\ttype=text/vtt\n' \
    >>"$(lektor-view ls -a -o path feed:urn:x:extras title:One)/extras"`,
		given: `cd "$(lektor-view ls -a -o path feed:urn:x:extras title:One)"`,
		out:   `\Ahttp://example.org/1.vtt\n\z`,
		then:  `cd "$D"`,
	},
	{
		starts: "id=urn:example:clock",
		before: `lektor-fetch rm --purge https://example.org/feed urn:x:extras urn:x:chart`,
		then: `test "$(lektor-view ls -o '{{.feed}}: {{.title}}')" = 'Clock: Current time'
lektor-fetch check`,
	},
	{
		starts: `mkdir -p "cur/$feed" && mv "new/$feed/$unique" "cur/$feed/$unique;2,S"`,
		given:  `cd "$D"; feed=$(ls new); unique=$(ls "new/$feed")`,
		then:   `test "$(lektor-view count)" = '0 unread of 1'; lektor-fetch check`,
	},
	{
		starts: `cd "${LEKTORDIR:-${XDG_DATA_HOME:-$HOME/.local/share}/lektor}"`, needs: "rsync",
		before: `lektor-fetch add https://example.org/feed`,
		then: `for d in new cur src; do diff -r "$d" ~/lektor-copy/"$d"; done
find ~/lektor-copy/new -name type -links +1 | grep .
test ! -e ~/lektor-copy/tmp
test "$(lektor-view count --dir ~/lektor-copy)" = "5 unread of 6"
test "$(lektor-fetch ls --dir ~/lektor-copy -o url)" = https://example.org/feed`,
	},
}

// fetcher has the steps of lektor-fetch(1).
var fetcher = []step{
	{
		starts: "lektor-fetch add https://daringfireball.net/",
		then:   `test "$(lektor-fetch ls -o url)" = https://daringfireball.net/feed; test "$(lektor-view count)" = "5 unread of 5"`,
	},
	{
		starts: "lektor-fetch rm https://daringfireball.net/feed",
		then:   `test -z "$(lektor-fetch ls)"; test "$(lektor-view count)" = "5 unread of 5"; lektor-fetch rm --purge https://daringfireball.net/feed`,
	},
	{starts: "lektor-fetch ls", before: `lektor-fetch add --no-fetch https://example.org/feed`, out: `\A *0  Blog of example.org +https://example.org/feed\n\z`},
	{starts: "lektor-fetch set https://example.org/feed interval 4h", then: `test "$(lektor-fetch set https://example.org/feed interval)" = 4h`},
	{
		starts: "lektor-fetch edit", given: `export EDITOR="sed -i 's/\$/ Ed/'"`,
		then: `test "$(lektor-fetch set https://example.org/feed categories)" = Ed`,
	},
	{
		starts: "https://example.org/feed Tech", except: "a line of the list", needs: "cp",
		then: `export EDITOR="cp $example"; lektor-fetch edit
test "$(lektor-fetch set https://example.org/feed categories)" = Tech; test "$(lektor-fetch set https://example.org/feed alias)" = "My name for it"
lektor-fetch set --unset https://example.org/feed categories; lektor-fetch set --unset https://example.org/feed alias`,
	},
	{starts: "lektor-fetch update https://example.org/feed", then: `test "$(lektor-view count)" = "5 unread of 5"`},
	{
		starts: "lektor-fetch watch", before: `lektor-fetch add --as-is --no-fetch https://example.com/feeds/main`,
		until: `test "$(lektor-view count)" = "10 unread of 10"`,
	},
	{
		starts: "lektor-fetch history https://daringfireball.net/feed", before: `lektor-fetch add --no-fetch https://daringfireball.net/feed`,
		then: `test "$(lektor-view count feed:daringfireball)" = "7 unread of 7"`,
	},
	{
		starts: "lektor-fetch deliver --id http://example.org/feed.xml < feed.xml",
		before: `echo '<rss version="2.0"><channel><title>Own</title><item><title>One</title><guid>urn:x:1</guid></item></channel></rss>' >feed.xml`,
		then:   `test "$(lektor-view ls -o title feed:http://example.org/feed.xml)" = One`,
	},
	{starts: "uptime | lektor-fetch put --feed-id urn:x:uptime --id urn:x:uptime:1 --title Uptime", out: `\A/.*/new/[0-9a-f]{40}/[^/]*\n\z`},
	{
		starts: "lektor-fetch import Subs.opml",
		before: `for f in https://example.org/feed https://example.com/feeds/main https://daringfireball.net/feed http://example.org/feed.xml urn:x:uptime; do lektor-fetch rm --purge "$f"; done
echo '<opml version="2.0"><head/><body><outline text="Org" xmlUrl="https://example.org/feed"/></body></opml>' >Subs.opml`,
		then: `test "$(lektor-view count)" = "5 unread of 5"; test "$(lektor-fetch ls -o title)" = Org`,
	},
	{starts: "lektor-fetch export --output Subs.opml", then: `grep 'xmlUrl="https://example.org/feed"' Subs.opml`},
	{starts: "lektor-fetch check", out: `\A\z`, then: `lektor-fetch rm --purge https://example.org/feed; rm Subs.opml feed.xml; rm "$D/etc/fetch/opml"`},
	{starts: "grep -s . src/*/etc/fetch/error", before: broken, given: `cd "$D"`, out: `\Ahttps://example.org/broken: .*410 Gone.*\n\z`},
	{
		starts: "grep -s . src/*/etc/history/incomplete",
		before: `lektor-fetch add --history https://example.com/feed && exit 1; test "$(lektor-view count)" = "5 unread of 5"`,
		given:  `cd "$D"`, out: `\Ahttps://example.com/2001\t.*404 Not Found\t20.*Z\n\z`,
		then: `lektor-fetch rm --purge https://example.com/feed`,
	},
	{
		starts: "lektor-fetch add https://daringfireball.net/",
		before: `lektor-fetch rm --purge https://example.org/broken`,
		out:    `(?s)A frost\n.*Fifth\n`,
		then:   `test "$(lektor-fetch ls -o url)" = https://daringfireball.net/feed; test "$(lektor-view count)" = "5 unread of 5"`,
	},
	{
		starts: "lektor-fetch import --no-fetch Subs.opml",
		before: `echo '<opml version="2.0"><head/><body><outline text="Com" xmlUrl="https://example.com/feed"/><outline text="Org" xmlUrl="https://example.org/feed"/></body></opml>' >Subs.opml`,
		then:   `test "$(lektor-fetch ls -o url | wc -l)" -eq 3; test "$(lektor-view count)" = "15 unread of 15"`,
	},
	{
		starts: "PATH=/usr/local/bin:/usr/bin:/bin", except: "lines of crontab(5)", before: due,
		then: `test "$(wc -l <"$example")" = 2; test -z "$(sh -c "$(tail -n 1 "$example" | cut -d ' ' -f 6-)" 2>&1)"; ` + notDue,
	},
	{
		starts: "lektor-fetch watch -o '{{.feed}}: {{.title}}'",
		before: `lektor-fetch add --as-is --no-fetch https://example.com/feeds/main`,
		until:  `test "$(grep -c '^Blog of example.com: [ATF]' "$HOME/out")" -eq 5`,
	},
	{
		starts: "lektor-fetch history -o path https://daringfireball.net/feed |",
		out:    `\A(/.*/cur/.*;2,S\n){2}\z`,
		then:   `test "$(lektor-view ls -o title --sort date is:read)" = "$(printf 'Old 1\nOld 2')"`,
	},
	{
		starts: `df -h | lektor-fetch put --feed-id urn:x:disk --feed-name Disk \`,
		out:    `\A/.*/new/[0-9a-f]{40}/[^/]*\n\z`,
		then:   `lektor-view ls -o '{{.feed}}: {{.title}}' feed:urn:x:disk | grep "^Disk: Disk on 20[0-9-]*\$"; lektor-view show "$(lektor-view ls -o path feed:urn:x:disk)" | grep /`,
	},
	{
		starts: "lektor-fetch set https://daringfireball.net/feed fulltext on",
		before: `lektor-fetch ls -o url | grep -v daringfireball | lektor-fetch rm -`,
		then:   `test "$(lektor-view ls -o fulltext feed:daringfireball is:unread | grep -c '^https://daringfireball.net/')" -eq 5; lektor-view ls -o path --sort date feed:daringfireball is:unread | tail -n 1 | lektor-view show --feed-text - | grep '^Text of number 1'`,
	},
	{
		starts: `cd "${LEKTORDIR:-${XDG_DATA_HOME:-$HOME/.local/share}/lektor}"`,
		then:   `test "$(lektor-fetch update --dry-run)" = https://daringfireball.net/feed; lektor-fetch; ` + notDue,
	},
}

// numbered makes a numbered list, as on a terminal.
const numbered = `lektor-view ls --number >"$HOME/numbered"`

// viewer has the steps of lektor-view(1).
var viewer = []step{
	{
		starts: "lektor-view ls -n 20 frost not:feed:lwn",
		before: `lektor-fetch add https://example.org/feed`,
		out:    `\AN .*A frost\n\z`,
	},
	{starts: "lektor-view show 3", given: numbered, out: `\ATitle: Third\n`, then: `test "$(lektor-view count)" = "5 unread of 5"`},
	{starts: "lektor-view next", out: `\ATitle: Fourth\n`, then: `test "$(lektor-view ls -o title is:read)" = Fourth`},
	{
		starts: "lektor-view open 3", given: numbered + `; export LEKTOR_BROWSER="echo opened"`,
		out:  `\Aopened https://example.org/3\n\z`,
		then: `test "$(lektor-view ls -o title --sort title is:read | tr '\n' ',')" = Fourth,Third,`,
	},
	{
		starts: "lektor-view play 3", given: `lektor-view ls --number has:audio >"$HOME/numbered"`,
		before: `for n in 1 2 3; do
	echo | lektor-fetch put --feed-id urn:x:sound --id "urn:x:$n" --title "Sound $n" --date "2026-01-0$n" --enclosure "http://cast.example/$n.mp3 audio/mpeg 1"
done`,
		then: `test "$(cat "$HOME/played")" = "--save-position-on-quit http://cast.example/1.mp3"; test "$(lektor-view ls -o title is:read has:audio)" = "Sound 1"; rm "$HOME/played"`,
	},
	{
		starts: "LEKTOR_BOOKMARK='lektor-bookmark linkding' lektor-view bookmark 3", given: `lektor-view ls -a --number >"$HOME/numbered"`,
		then: `grep '^linkding https\?://.* .' "$HOME/bookmarked"; rm "$HOME/bookmarked"`,
	},
	{starts: "lektor-view digest --lines 2 since:1d", out: `(?s)\AIn feed .*: 3 entries\n.*A frost\n +Text of number 1`, then: `test "$(lektor-view ls -o title --sort title | tr '\n' ',')" = "Sound 2,Sound 3,"`},
	{
		starts: "lektor-view follow -n 10 feed:https://example.org/feed",
		before: `lektor-view ls -a -o path feed:https://example.org/feed | lektor-view mark --clear S -`,
		until:  `test "$(grep -c 'Fifth\|Fourth\|Third\|Tea at noon\|A frost' "$HOME/out")" = 5`,
	},
	{starts: "lektor-view count --by folder since:1w", out: `\A +5 +5  \(no folder\)\n\z`},
	{starts: "lektor-view stats --weeks 26", out: `(?s)\A +unread .* 8  2 feeds in all, .*; 0 broken, . silent\n\z`},
	{starts: "lektor-view mark --set read 1-2", given: numbered, out: `\A(.*/cur/.*;2,S\n){2}\z`, then: `test "$(lektor-view ls -o title --sort title is:read | tr '\n' ',')" = "A frost,Sound 1,Tea at noon,"`},
	{starts: "lektor-view rm 3", then: `test "$(lektor-view ls -o title is:trashed)" = Third`},
	{starts: "lektor-view undo", out: `\A.*/cur/.*;2,\n\z`, then: `test -z "$(lektor-view ls is:trashed)"`},
	{starts: "lektor-view index", then: `test "$(lektor-view index --check)" = "8 entries, as in the directory"; lektor-view index --drop`},
	{
		starts: "lektor-view expire --read 90d --dry-run", out: `\A\z`,
		then: `test "$(sed 's/90d/now/' "$example" | sh | wc -l)" -eq 3`,
	},
	{
		starts: "lektor-view html www is:unread",
		before: `rm -r "$D"; lektor-fetch add https://example.org/feed`,
		then:   `test -s www/index.html; test "$(ls www/entry 2>/dev/null | wc -l)" -eq "$(lektor-view count -o all is:unread)"`,
	},
	{starts: "lektor-view maildir ~/Mail/feeds", then: `test "$(find "$HOME/Mail/feeds/new" "$HOME/Mail/feeds/cur" -type f | wc -l)" -eq "$(lektor-view count -o all)"`},
	{starts: "lektor-view mbox --query is:flagged >good.mbox", before: `lektor-view ls -a -n 1 -o path | lektor-view mark -s F -`, then: `test "$(grep -c '^From ' good.mbox)" = "$(lektor-view count -o all is:flagged)"`},
	{
		starts: "lektor-view ls", terminal: true,
		out:  `(?s)5 N .*Fifth\n.*Title: Third\n.*Title: Fourth\n`,
		then: `test "$(lektor-view ls -o title -a is:read)" = Fourth`,
	},
	{
		starts: "lektor-view ls -o path before:2w | lektor-view mark -s S -",
		before: `echo | lektor-fetch put --feed-id urn:x:old --id urn:x:0 --title Older --date "$(date -d '15 days ago' +@%s 2>/dev/null || date -v-15d +@%s)"
echo | lektor-fetch put --feed-id urn:x:old --id urn:x:9 --title Newer --date "$(date -d '13 days ago' +@%s 2>/dev/null || date -v-13d +@%s)"`,
		out:  `\A/.*/cur/.*;2,S\n\z`,
		then: `test "$(lektor-view ls -o title -a is:read feed:urn:x:old)" = Older`,
	},
	{
		starts: "lektor-view ls -o path read:1y not:is:flagged |",
		before: old + `; lektor-view count -o all >"$HOME/a"`,
		then: `test "$(lektor-view count -o all)" = "$(cat "$HOME/a")"
sed s/1y/now/ "$example" | sh
test "$(lektor-view ls -o title is:read)" = "Old 1"`,
	},
	{starts: "lektor-view undo", out: `(?m)\A(.*/cur/.*;2,F?S\n)+\z`, then: `test "$(lektor-view count -o all)" = "$(cat "$HOME/a")"`},
	{
		starts: "lektor-view ls -o path is:trashed | lektor-view rm --now -",
		before: `lektor-view ls -a -n 1 -o path | lektor-view rm -; lektor-view ls is:trashed | grep .`,
		then:   `test -z "$(lektor-view ls is:trashed)"; test "$(($(lektor-view count -o all) + 1))" -eq "$(cat "$HOME/a")"`,
	},
	{
		starts: "lektor-view ls -o path --sort date has:audio |",
		before: `for n in 1 2; do
	echo | lektor-fetch put --feed-id urn:x:cast --id "urn:x:cast$n" --title "Cast $n" --date "2026-01-0$n" --enclosure "http://cast.example/$n.mp3 audio/mpeg 1"
done`,
		then: `test "$(sed 's/.* //' "$HOME/played" | tr '\n' ' ')" = "http://cast.example/1.mp3 http://cast.example/2.mp3 "
test "$(lektor-view count has:audio)" = "0 unread of 2"`,
	},
	{
		starts: "lektor-fetch set https://example.org/feed keep all",
		before: `lektor-fetch add https://example.com/feed
lektor-view ls -a -o path feed:example.com | lektor-view mark -s S -
lektor-view count -o all feed:https://example.org/feed is:read >"$HOME/a"; lektor-view count -o all is:unread >>"$HOME/a"`,
		then: `sed 's/20/2/; s/90d/now/' "$example" | sh
test "$(lektor-view count -o all feed:https://example.com/feed)" = 2
{ lektor-view count -o all feed:https://example.org/feed is:read; lektor-view count -o all is:unread; } | cmp - "$HOME/a"`,
	},
	{starts: "feed=$(lektor-fetch ls -o path https://example.org/feed)", then: `test "$(lektor-view ls -o feed -n 1)" = "The good one"`},
	{
		starts: `lektor-view follow --run notify-send '{{.feed}}' '{{.title}}'`,
		until: `n=$(($(cat "$HOME/m" 2>/dev/null || echo 0) + 1)); echo $n >"$HOME/m"
echo | lektor-fetch put --feed-id urn:x:gong --feed-name Gong --id "urn:x:$n" --title "Dong $n"
grep -q '^Gong|Dong [0-9]*$' "$HOME/notified"`,
	},
	{
		starts: `lektor-view follow --exec 'notify-send "$LEKTOR_FEED" "$LEKTOR_TITLE"'`,
		// follow reports only entries that arrive after it began.
		until: `n=$(($(cat "$HOME/n" 2>/dev/null || echo 0) + 1)); echo $n >"$HOME/n"
echo | lektor-fetch put --feed-id urn:x:bell --feed-name Bell --id "urn:x:$n" --title "Ding $n"
grep -q '^Bell|Ding [0-9]*$' "$HOME/notified"`,
	},
}

// publishing has the steps of lektor-view-publish(1).
var publishing = []step{
	{
		starts: "lektor-view publish --output news.xml --title News since:1w",
		before: `lektor-fetch add https://example.org/feed`,
		then:   `grep '<title type="text">News</title>' news.xml; test "$(grep -c '<entry>' news.xml)" = 5`,
	},
	{
		starts: `lektor-view publish --archive good --per-page 50 \`,
		before: `for n in 1 2; do echo | lektor-fetch put --feed-id urn:x:good --id "urn:x:$n" --title "Good $n" | lektor-view mark -s F -; done`,
		then:   `grep '<title type="text">Good reads</title>' good/index.atom; grep '<title type="text">Good 2</title>' good/index.atom` + archived,
	},
}

// rules has the steps of lektor-view-rules(1).
var rules = []step{
	{
		starts: `cd "${LEKTORDIR:-${XDG_DATA_HOME:-$HOME/.local/share}/lektor}"`,
		before: `lektor-fetch add https://example.org/feed`,
		given: "umask 022" + ruled + `
put lwn '[$] A kernel'
put lwn 'A kernel'
put news 'Tea' --feed-name 'Daily News' --category ads
put cast 'Heard' --feed-name Cast --enclosure 'http://cast.example/1.mp3 audio/mpeg 1'`,
		then: `
export LEKTORDIR="$HOME/ruled"
lektor-view rules check 2>&1 | grep '^lektor-view: 3 rules in'
lektor-view rules apply
test "$(lektor-view ls -a --sort title -o title,flags | tr '\t\n' ':,')" = '[$] A kernel:Sp,A kernel:,Heard:,'
test "$(lektor-view ls -o title is:trashed)" = Tea
grep '^Cast|Heard$' "$HOME/notified"; rm "$HOME/notified"; cd "$HOME/work"`,
	},
	{
		starts: "lektor-view rules apply --again --dry-run -o title",
		before: `mkdir -p "$D/etc/view"; echo 'title:tea -> flag' >"$D/etc/view/rules"`,
		out:    `\ATea at noon\n/.*/cur/.*;2,F\n\z`,
	},
	{
		starts: `# ignore-article "https://example.org/feed" "title =~ \"^Ad:\""`, except: ruleLines,
		then: ruled + `
put https://example.org/feed 'AD: tea'
put https://example.org/feed 'Not an Ad: tea'
put https://example.com/feed 'Ad: coffee'
put a 'By a bot' --author Bot
put a 'By another' --author Botanist
echo 'A <b>casino</b>' | lektor-fetch put --feed-id urn:x:a --id urn:x:c --title C --type text/html
put a 'Old' --date 2001-01-01T00:00:00Z
apply
test "$(lektor-view ls -a --sort title -o title | tr '\n' ',')" = "Ad: coffee,By another,Not an Ad: tea,"`,
	},
	{
		starts: "is:repeat -> read", except: ruleLines,
		then: ruled + `
put a 'First' --link http://x.example/1
put b 'Again' --link https://x.example/1/
put b 'Other' --link https://x.example/2
apply
test "$(lektor-view ls --sort title -o title | tr '\n' ',')" = "First,Other,"`,
	},
}

// saving has the steps of lektor-view-save(1).
var saving = []step{
	{
		starts: "lektor-view save ~/Podcasts --query 'feed:radio has:audio'",
		before: `echo | lektor-fetch put --feed-id https://example.org/radio --id urn:x:1 --title News --date 2026-01-02 --enclosure 'https://example.org/feed audio/mpeg 1'`,
		then:   `test -s "$HOME/Podcasts/"*"/2026-01-02 News.mp3"; test "$(lektor-view ls -o title flag:d)" = News`,
	},
	{
		starts: "lektor-view save ~/Podcasts --type audio --query 'folder:podcasts has:audio'",
		before: `lektor-fetch add --as-is --no-fetch --category Podcasts https://example.org/cast
echo | lektor-fetch put --feed-id https://example.org/cast --id urn:x:saved --title Saved --date 2026-01-02 --enclosure 'https://example.org/feed audio/mpeg 1'`,
		then: `test -s "$HOME/Podcasts/"*"/2026-01-02 Saved.mp3"; test "$(lektor-view ls -o title flag:d feed:cast)" = Saved
test -z "$(lektor-view save "$HOME/Podcasts" --query has:audio)"; lektor-fetch rm --purge https://example.org/cast`,
	},
}

// tui has the steps of lektor-view-tui(1).
var tui = []step{
	{starts: "entries of News", except: "the output of --plain; tests of lektor-view have a person at it", then: `! lektor-view tui --plain </dev/null`},
	{
		starts: "# the keys of newsboat, with some of one's own", except: "it is a file, which is read",
		then: `lektor-fetch add https://example.org/feed; mkdir -p "$D/etc/view"; cp "$example" "$D/etc/view/keys"
lektor-view tui </dev/null >"$HOME/said" 2>&1 || true
test "$(head -n 1 "$HOME/said")" = "lektor-view: tui needs a terminal, on standard input and standard output"
echo "x no-such-thing" >>"$D/etc/view/keys"; lektor-view tui </dev/null 2>&1 | grep "line 9: there is no action"; rm "$D/etc/view/keys"`,
	},
	{
		starts: "x       trash", except: "it is a part of a file, which is read",
		then: `cp "$example" "$D/etc/view/keys"; echo "y no-such-thing" >>"$D/etc/view/keys"; lektor-view tui </dev/null >"$HOME/said" 2>&1 || true
test "$(grep -c 'there is no' "$HOME/said")" = 1; grep "line 8: there is no action" "$HOME/said"; rm "$D/etc/view/keys"`,
	},
	{
		starts: "<enter> l", except: "a table, which TestManualKeys compares with the keys",
		then: `grep -o 'lektor-\(fetch\|pages\) [a-z]*' "$example" | sort -u >"$HOME/a"; test -s "$HOME/a"; while read -r program command; do "$program" "$command" --help; done <"$HOME/a"`,
	},
	{
		starts: "theme dark", except: "it is a file, which is read", needs: "script",
		then: `cp "$example" "$D/etc/view/look"; echo "theme no-such-thing" >>"$D/etc/view/look"
printf Q | TERM=xterm script -qec 'lektor-view tui' /dev/null >"$HOME/said"
test "$(grep -o 'etc/view/look, line [0-9]*' "$HOME/said" | sort -u)" = "etc/view/look, line 5"; rm "$D/etc/view/look"`,
	},
	{starts: "lektor-view tui --keys newsboat", except: "it stays; tests of lektor-view have a person at it", then: `! lektor-view tui --keys newsboat </dev/null; ! lektor-view tui --keys emacs </dev/null 2>"$HOME/said"; grep 'no such set' "$HOME/said"`},
}

// podium makes entries for queries.
const podium = `
put() {
	feed=$1 title=$2
	shift 2
	echo "Text, for example" | lektor-fetch put --feed-id "urn:x:$feed" --feed-name "$feed" \
		--id "urn:x:$(printf %s "$title" | tr -d ' ')" --title "$title" "$@"
}
put lwn 'A kernel'
put lwn 'A kernel release'
put lwn 'An old kernel' --date 2001-01-01T00:00:00Z
put phoronix 'go1.26 is out'
put phoronix 'Ago 1.2'
put other 'A match' --category sport
put cast 'Heard' --enclosure 'http://cast.example/1.mp3 audio/mpeg 1' | lektor-view mark -s S -
put cast 'Not heard' --enclosure 'http://cast.example/1.mp3 audio/mpeg 1'
put other 'Quoted' | lektor-view mark -s q -`

const (
	argument = "a query, which is given to lektor-view"
	ask      = `ask() { eval "lektor-view ls -o title $1" | sort | tr '\n' ,; }; `
)

// queries has the steps of lektor-query(7).
var queries = []step{
	{
		starts: "kernel feed:lwn since:2d not:title:release", except: argument, before: podium,
		then: ask + `test "$(ask "$(cat "$example")")" = 'A kernel,'`,
	},
	{
		starts: `cd "${LEKTORDIR:-${XDG_DATA_HOME:-$HOME/.local/share}/lektor}"`,
		out:    `\A.*Not heard\n\z`,
		then:   `test "$(lektor-view count --by query -o query,unread)" = "Podcasts	1"`,
	},
	{starts: "feed:lwn or feed:phoronix", except: argument, then: ask + `test "$(ask "$(cat "$example")")" = 'A kernel,A kernel release,Ago 1.2,An old kernel,go1.26 is out,'`},
	{
		starts: "has:audio read:4w", except: argument,
		then: ask + `test -z "$(ask "$(cat "$example")")"; test "$(ask "$(sed s/4w/now/ "$example")")" = Heard,`,
	},
	{starts: `'title:/\bgo ?1\.[0-9]+\b/i'`, except: argument, then: ask + `test "$(ask "$(cat "$example")")" = 'go1.26 is out,'`},
	{
		starts: "'not:(category:sport or category:politics) on:today'", except: argument,
		then: ask + `test "$(ask "$(cat "$example")")" = 'A kernel,A kernel release,Ago 1.2,Not heard,Quoted,go1.26 is out,'`,
	},
	{starts: "not:is:repeat", except: argument, then: ask + `test "$(ask "$(cat "$example")")" = "$(ask '')"; test -z "$(ask is:repeat)"`},
	{starts: `'"for example" flag:q'`, except: argument, then: ask + `test "$(ask "$(cat "$example")")" = Quoted,`},
}

// cloud has the steps of lektor-cloudd(1).
var cloud = []step{
	{
		starts: "lektor-cloudd listen --listen :5337 --public-url http://me.example:5337/",
		before: `lektor-fetch add https://example.org/feed`,
		edit:   "s/listen :5337/listen 127.0.0.1:0/", // a free port
		until:  `test -e "$D/etc/cloudd/lock"`,
	},
	{starts: "lektor-cloudd status", out: `\A\z`},
	{
		starts: "lektor-cloudd ping https://me.example/feed.xml",
		before: `lektor-view publish --format rss --output feed.xml --self "$http_proxy/feed.xml" --cloud "$http_proxy/pleaseNotify" title:tea`,
		edit:   `s,https://me.example,$http_proxy,; s,cloudd ping,& --allow 127.0.0.1,`, // ping uses no proxy
		then:   `rm feed.xml`,
	},
	{
		starts: "lektor-cloudd save --cloud https://rpc.example.org/RPC2 --user bull feed.xml",
		before: `echo '<rss version="2.0"><channel><title>T</title></channel></rss>' >feed.xml`,
		edit:   `s,cloudd save,cloudd save --dry-run,`, // the cloud does not exist
		given:  `export LEKTOR_CLOUD_PASSWORD=ferdinand`,
		then:   `LEKTOR_CLOUD_PASSWORD=ferdinand lektor-cloudd save --dry-run --cloud https://rpc.example.org/RPC2 --user bull feed.xml 2>&1 | grep 'would be saved at https://rpc.example.org/RPC2 as bull'`,
	},
	{
		starts: "lektor-cloudd hub --listen :5337 --public-url http://hub.example:5337",
		edit:   "s/listen :5337/listen 127.0.0.1:0/", // a free port
		until:  `test -e "$HOME/.local/state/lektor-hub/log"`,
		then:   `rm -r "$HOME/.local/state/lektor-hub"`,
	},
	{
		starts: `lektor-cloudd listen --listen 127.0.0.1:5337 \`,
		before: `rm "$D/etc/cloudd/lock"`,
		edit:   "s/:5337/:0/", // a free port
		until:  `test -e "$D/etc/cloudd/lock"`,
	},
	{
		starts: "location /lektor/ {", except: "the configuration of a proxy",
		then: `grep 'proxy_pass http://127.0.0.1:5337;' "$example"
if command -v nginx; then
	mkdir nginx
	printf 'error_log stderr; pid %s/nginx/pid; events {}\nhttp { server { listen 127.0.0.1:8080;\n%s\n} }\n' "$PWD" "$(cat "$example")" >nginx/conf
	nginx -t -c "$PWD/nginx/conf"
fi`,
	},
	{
		starts: `lektor-cloudd hub --listen 127.0.0.1:5337 \`,
		edit:   "s/:5337/:0/", // a free port
		until:  `test -e "$HOME/.local/state/lektor-hub/log"`,
	},
	{
		starts: "hub.example {", except: "the configuration of a proxy",
		then: `grep 'reverse_proxy 127.0.0.1:5337' "$example"; ! command -v caddy || caddy validate --adapter caddyfile --config "$example"`,
	},
	{
		starts: "tail -F ~/.local/state/lektor-hub/log | grep updated", except: "it goes on until it is stopped",
		then: `printf '2026-01-01T00:00:00Z\tupdated\thttp://a.example/\t1 subscriber\n' >>"$HOME/.local/state/lektor-hub/log"; sed 's/-F/-n 1/' "$example" | sh | grep http://a.example/`,
	},
	{
		starts: "lektor-cloudd status -o '{{.state}} {{.url}} {{.error}}' | grep -v ^registered",
		before: `
for s in registered failed; do
	lektor-fetch add --as-is --no-fetch "https://example.com/$s"
	cd "$(lektor-fetch ls -o path "https://example.com/$s")/etc"
	mkdir -p push cloudd
	echo "http://hub.example/" >push/hub
	echo "http://hub.example/" >cloudd/hub
	echo websub >cloudd/protocol
	echo "https://me.example/0123456789abcdef0123456789abcdef" >cloudd/callback
	echo "https://example.com/$s" >cloudd/topic
	echo "$s" >cloudd/state
	cd -
done`,
		out: `\Afailed https://example.com/failed .*\n\z`,
	},
	{
		starts: `lektor-view publish --format rss --output good.xml \`,
		before: `lektor-view ls -o path title:tea | lektor-view mark -s F -`,
		edit:   `s,https://me.example,$http_proxy,; s,http://rpc.rsscloud.io:5337,$http_proxy,; s,cloudd ping,& --allow 127.0.0.1,`, // ping uses no proxy
		then:   `grep '<title>Tea at noon</title>' good.xml; grep '<cloud .*registerProcedure' good.xml || grep '<cloud ' good.xml; ! grep frost good.xml`,
	},
}

// notices has the steps of lektor-ess(1).
var notices = []step{
	{
		starts: "lektor-ess build https://example.com/feed > feed.ess", before: "lektor-fetch add https://example.com/feed",
		then: `test "$(lektor-ess decode feed.ess | wc -l)" -eq 5`,
	},
	{
		starts: "lektor-ess nno is:flagged > good.nno", before: `lektor-view ls -o path -n 1 | lektor-view mark -s F -`,
		then: `test "$(lektor-ess decode good.nno | wc -l)" -eq 1`,
	},
	{starts: "lektor-ess top -n 50 *.ess", out: `(?s)\A[0-9]+,\n(https://example.com/feed,[0-9]+,[0-9]+,?\n?){5}\z`},
	{
		starts: "lektor-ess poll; lektor-fetch",
		before: `mkdir -p "$(lektor-fetch ls -o path)/etc/ess" && echo https://me.example/feed.ess >"$(lektor-fetch ls -o path)/etc/ess/link"`,
		then:   `lektor-ess poll 2>&1 | grep '1 request'`,
	},
	{starts: "lektor-ess resolve good.nno", out: `\A/.*/(new|cur)/.*\n\z`},
	{
		starts: "lektor-ess publish --base-url https://me.example/www/ www",
		then:   `test "$(lektor-ess decode www/*.ess | wc -l)" -eq 5; test -s www/index.html -a -s www/ess.svg -a -s www/nno.svg -a -s www/feeds.nno`,
	},
	{
		starts: "lektor-ess discover https://me.example/www/",
		out:    `(?m)\Aess\thttps://me.example/www/[0-9a-f]{40}.ess\t.*\nnno\thttps://me.example/www/feeds.nno\t.*\n\z`,
	},
	{starts: "lektor-ess checksum 'hello world'", out: `\A92\n\z`},
	{starts: "lektor-ess decode feed.ess", out: `\A([0-9TZ:-]+\thttps://example.com/feed\t[0-9]+\t[0-9]+\n){5}\z`},
	{
		starts: "lektor-ess check feed.ess", out: `\A\z`,
		then: `lektor-fetch rm --purge https://example.com/feed; rm -r www good.nno feed.ess`,
	},
	{
		starts: "lektor-ess poll -q; lektor-fetch -q",
		before: `lektor-fetch add https://example.com/feed
lektor-ess build https://example.com/feed >feed.ess
f=$(lektor-fetch ls -o path)
mkdir -p "$f/etc/ess" && echo https://me.example/feed.ess >"$f/etc/ess/link"
lektor-fetch rm --purge https://example.com/feed
lektor-fetch add --no-fetch --as-is https://example.com/feed
lektor-fetch set https://example.com/feed interval 1d
mkdir -p "$f/etc/ess" && echo https://me.example/feed.ess >"$f/etc/ess/link"`,
		then: `test "$(lektor-view count)" = "5 unread of 5"; ` + notDue,
	},
	{
		starts: "find ess -name '*.ess' -print0 | lektor-ess top -n 1000 -0 -",
		before: `mkdir -p ess/1; lektor-ess build --output ess/1/a.ess https://example.com/feed`,
		out:    `(?s)\A[0-9]+,\n(https://example.com/feed,[0-9]+,[0-9]+,?\n?){5}\z`,
	},
	{
		starts: `parallel -j 4 "perl -ne '/,([^,]*)/; print if unpack(q(%32C*), \$1) % 4 == {}' \`, needs: "parallel",
		// Each of 500 feeds has two documents; the later one counts.
		before: `awk 'BEGIN { for (i = 0; i < 1000; i++) print 1700000000 + i * 7919 % 100003 ",http://f" i % 500 ".example/x," i * 31 % 40000 "," i % 256 "," 40000 + i * 17 % 40000 "," i % 256 }' >all.ess`,
		out:    `\A[0-9]+,,(http://f[0-9]+.example/x,[0-9]+,[0-9]+,?){500,1000}\n\z`,
		then: `cat part.? | sort >"$HOME/a"; sort all.ess | cmp - "$HOME/a"
test "$(wc -l <part.3)" -gt 100
parallel -j 4 'lektor-ess top --at @1701000000 -n 1000 --lines < {}' ::: part.? >parts.ess
test "$(lektor-ess top --at @1701000000 -n 1000 --lines <parts.ess)" = "$(lektor-ess top --at @1701000000 -n 1000 --lines <all.ess)"`,
	},
	{
		starts: "lektor-view ls -o path is:flagged | lektor-ess nno - > flagged.nno",
		before: `lektor-view ls -o path title:third | lektor-view mark -s F -
lektor-fetch rm --purge https://example.com/feed >"$HOME/out"`,
		out:  `(?s)Title: A frost\n.*Title: Tea at noon\n`,
		then: `test -s flagged.nno`,
	},
	{
		starts: "lektor-ess build --from-document --url https://example.com/feed < feed.xml > feed.ess", needs: "curl",
		before: `curl -s https://example.com/feed >feed.xml`,
		then:   `lektor-ess check feed.ess; test "$(lektor-ess decode feed.ess | wc -l)" -eq 5`,
	},
}

// essFormat has the steps of ess(5).
var essFormat = []step{
	{starts: `document = build "," url *( sep minutes "," sum )`, except: grammar},
	{
		starts: "1503674400,http://example.com/rss.xml,", except: sample,
		then: `lektor-ess check - <"$example"; test "$(lektor-ess decode -o checksum - <"$example" | tr '\n' ' ')" = "92 68 53 "; test "$(lektor-ess decode -o date - <"$example" | head -n 1)" = 2017-08-25T15:19:00Z`,
	},
	{
		starts: "[...title].reduce((a,b)=>a+b.charCodeAt(0)&255,0)", except: "JavaScript",
		then: `test "$(lektor-ess checksum 'hello world')" = 92`,
	},
	{
		starts: `<link rel="alternate" type="application/ess"`, except: sample,
		then: `cp "$example" page.html; test "$(lektor-ess discover -o kind,url https://me.example/page.html)" = "$(printf 'ess\thttps://me.example/ess/')"`,
	},
}

// nnoFormat has the steps of nno(5).
var nnoFormat = []step{
	{starts: `document = build "," [ entry *( "," entry ) ]`, except: grammar},
	{
		starts: "1503411300,", except: sample,
		then: `lektor-ess check - <"$example"; test "$(lektor-ess decode -o url - <"$example" | tr '\n' ' ')" = "http://example.com/rss.xml http://example2.com/rss.xml "`,
	},
}

// importing has the steps of lektor-import(1).
var importing = []step{
	{
		starts: "lektor-import newsboat",
		before: `mkdir ~/.newsboat; printf '%s\n' 'https://example.org/feed tech "~Org"' '"query:Tea:title =~ \"tea\""' >~/.newsboat/urls; : >~/.newsboat/cache.db`,
		then:   `test "$(lektor-fetch ls -o url)" = https://example.org/feed; test -s "$D/etc/view/query/Tea"`,
	},
	{
		starts: "lektor-import sfeed ~/.sfeed/sfeedrc",
		before: `mkdir ~/.sfeed; printf 'feeds() {\n\tfeed Com https://example.com/feed\n}\n' >~/.sfeed/sfeedrc`,
		then:   `test "$(lektor-fetch ls -o url Com)" = https://example.com/feed; lektor-fetch rm --purge Com`,
	},
	{
		starts: "lektor-import r2e ~/.config/rss2email.cfg",
		before: `mkdir -p ~/.config; printf '[feed.Com]\nurl = https://example.com/feed\n' >~/.config/rss2email.cfg; echo '{"feeds": []}' >~/.config/rss2email.json`,
		then:   `test "$(lektor-fetch ls -o url Com)" = https://example.com/feed; lektor-fetch rm --purge Com`,
	},
	{
		starts: "lektor-import feedly feedly.opml saved.json",
		before: `echo '<opml version="2.0"><body><outline text="Com" xmlUrl="https://example.com/feed"/></body></opml>' >feedly.opml; echo '[]' >saved.json`,
		then:   `test "$(lektor-fetch ls -o url Com)" = https://example.com/feed; lektor-fetch rm --purge Com`,
	},
	{
		starts: "lektor-fetch import --from newsboat",
		then:   `test "$(lektor-view count folder:tech)" = "5 unread of 5"; test "$(lektor-fetch ls -o title)" = Org; test "$(lektor-view ls -o title query:Tea | sort -u)" = "Tea at noon"`,
	},
	{
		starts: "lektor-import newsboat --dry-run ~/.newsboat",
		before: `echo https://example.com/feed >>~/.newsboat/urls`,
		out:    `\Ahttps://example.com/feed\n\z`,
		then:   `test "$(lektor-fetch ls -o url)" = https://example.org/feed`,
	},
	{
		starts: "lektor-import inoreader subscriptions.xml starred.json",
		before: `echo '<opml version="2.0"><body><outline text="More"><outline text="Com" xmlUrl="https://example.com/feed"/></outline></body></opml>' >subscriptions.xml
lektor-view ls -a -o '{"items":[{"canonical":[{"href":"{{.url}}"}],"categories":["user/-/state/com.google/starred"],"origin":{"streamId":"feed/https://example.org/feed"}}]}' title:tea | head -n 1 >starred.json`,
		out:  `\A/.*/src/[0-9a-f]{40}\n\z`,
		then: `test "$(lektor-view count is:flagged)" = "1 unread of 1"; lektor-fetch ls -o '{{.title}} {{.categories | join ","}}' | grep '^Com More$'`,
	},
}

// pages has the steps of lektor-pages(1).
var pages = []step{
	{
		starts: "lektor-pages html ~/www/news", before: "lektor-fetch add https://example.com/feed",
		then: `test "$(ls "$HOME/www/news/entry" | wc -l)" -eq 5; test -s "$HOME/www/news/index.html"`,
	},
	{starts: "lektor-pages maildir ~/Mail/feeds", then: `test "$(ls "$HOME/Mail/feeds/new" | wc -l)" -eq 5; rm -r "$HOME/Mail/feeds"`},
	{starts: "lektor-pages mbox --query title:tea >tea.mbox", then: `test "$(grep -c '^From ' tea.mbox)" = 1`},
	{
		starts: "lektor-pages message 1700000001.1.host >tea.eml",
		edit:   `s/1700000001.1.host/"$(lektor-view ls -o path title:tea)"/`,
		then:   `grep '^Subject: Tea at noon' tea.eml; test "$(lektor-view count)" = "5 unread of 5"`,
	},
	{starts: "lektor-view ls -o path title:tea | lektor-pages digest - >tea.html", then: `grep 'Tea at noon' tea.html; ! grep frost tea.html; test "$(lektor-view count)" = "5 unread of 5"`},
	{
		starts: "lektor-fetch; lektor-view html www",
		then:   `test "$(ls www/entry | wc -l)" -eq "$(lektor-view count -o all)"; test -s www/index.html; lektor-pages html www; test -z "$(find www -newer www/.lektor-html -name '*.html')"`,
	},
	{
		starts: "lektor-pages html --title Kernel kernel folder:Linux since:30d",
		then:   `grep '<h1 dir="auto">Kernel</h1>' kernel/index.html`,
	},
	{
		starts: "lektor-fetch; lektor-view maildir ~/Mail/feeds",
		then:   `test "$(ls "$HOME"/Mail/feeds/new | wc -l)" -eq "$(lektor-view count -o unread)"; test -z "$(lektor-view maildir -o file ~/Mail/feeds)"`,
	},
	{
		starts: "mkdir -p ~/.mblaze", needs: "mthread",
		before: `echo text | lektor-fetch put --feed-id urn:x:mail --feed-name Mail --id urn:x:1 --title 'By mail'`,
		out:    `(?s)By mail`,
	},
	{
		starts: "lektor-view maildir --query is:unread -o path ~/Mail/feeds |",
		before: `echo text | lektor-fetch put --feed-id urn:x:mail --id urn:x:2 --title 'To be marked'; lektor-view count -o unread >"$HOME/a"`,
		then: `test -z "$(lektor-view ls -o path 'To be marked')"; test "$(($(lektor-view count -o unread) + 1))" -eq "$(cat "$HOME/a")"
grep -l 'To be marked' "$HOME"/Mail/feeds/new/*`,
	},
	{
		starts: "lektor-view digest --html --mail kim@example.org >digest.eml && {",
		before: `: >"$HOME/refused"; lektor-view count -o unread | grep -v '^0$' >"$HOME/a"`,
		then: `test "$(lektor-view count -o unread)" = "$(cat "$HOME/a")"
rm "$HOME/refused"
sh "$example"
grep -x -- '-t -i' "$HOME/sent"; grep -x 'To: kim@example.org' "$HOME/sent"
grep "^Subject: $(cat "$HOME/a") entr" "$HOME/sent"; grep 'multipart/alternative' "$HOME/sent"
test "$(lektor-view count -o unread)" = 0
rm "$HOME/sent"; sh "$example"; test ! -e "$HOME/sent"`,
	},
	{
		starts: "lektor-view mbox --query is:flagged >flagged.mbox",
		before: `lektor-view ls -a -n 1 -o path | lektor-view mark -s F -`,
		then:   `test "$(grep -c '^From ' flagged.mbox)" = 1; grep '^X-Status: F$' flagged.mbox`,
	},
}

// articles has the steps of lektor-article(1).
var articles = []step{{
	starts: "url=https://example.org/post",
	given:  `curl() { echo '<nav>No</nav><article><p>'; seq -s ' word, ' 200; echo '</p><a href=next>next</a></article>'; }`,
	then:   `grep 'word, 77' post.html; grep 'href="https://example.org/next"' post.html; ! grep No post.html`,
}}

// sharing has the steps of lektor-share(1).
var sharing = []step{
	{
		starts: "lektor-share init ~/Sync/lektor",
		before: "lektor-fetch add https://example.com/feed",
		then:   `test -s etc/share/endpoint || test -s "$D/etc/share/endpoint"; test -d "$HOME/Sync/lektor"`,
	},
	{
		starts: "lektor-fetch; lektor-share sync -q",
		then:   `test "$(ls "$HOME/Sync/lektor" | wc -l)" -eq 1; lektor-share check "$HOME"/Sync/lektor/*/*; grep 'xmlUrl="https://example.com/feed"' "$HOME"/Sync/lektor/*/subscriptions.opml`,
	},
	{
		starts: "lektor-share init --name laptop ~/Sync/lektor",
		then:   `test "$(ls "$HOME/Sync/lektor" | wc -l)" -eq 1`,
	},
	{starts: "lektor-share sync", then: `test "$(ls "$HOME/Sync/lektor" | wc -l)" -eq 1`},
	{
		starts: "lektor-fetch; lektor-share apply; lektor-view ls", out: `(?s)Tea at noon`,
	},
	{starts: "lektor-share status", out: `\A\z`},
	{
		starts: "lektor-share peer add phone https://dav.example.com/lektor/phone-0a7903db47fb0ae8",
		then:   `test "$(lektor-share peer -o name,place)" = "$(printf 'phone\thttps://dav.example.com/lektor/phone-0a7903db47fb0ae8')"; lektor-share peer rm phone`,
	},
	{starts: "lektor-share conflicts", out: `\A\z`},
	{starts: "lektor-share resolve --all ours", then: `test -z "$(lektor-share conflicts -o item)"`},
	{starts: "lektor-share publish - > subscriptions.opml", then: `grep 'xmlUrl="https://example.com/feed"' subscriptions.opml`},
	{
		starts: "lektor-share merge mine.opml theirs.opml > both.opml",
		before: `for n in mine theirs; do
	echo "<opml version='2.0' xmlns:sx='https://www.microsoft.com/schemas/rss/sse'><head/><body><outline text='$n'><sx:sync id='$n' version='1'><sx:history by='$n'/></sx:sync></outline></body></opml>" >$n.opml
done`,
		then: `lektor-share check both.opml | grep '2 items, 0 deleted, 0 conflicts, 0 problems'`,
	},
	{starts: "lektor-share check both.opml", out: `\Aboth.opml: 2 items, 0 deleted, 0 conflicts, 0 problems\n\z`},
	{
		starts: "lektor-share init ~/Sync/lektor",
		then:   `test "$(ls "$HOME/Sync/lektor" | wc -l)" -eq 1`,
	},
	{
		starts: "lektor-share status",
		then:   `test -z "$(lektor-share status)"; test -z "$(lektor-share conflicts -o item)"`,
	},
	{
		starts: "lektor-share conflicts -o item | lektor-share resolve - theirs",
		then:   `test -z "$(lektor-share conflicts -o item)"`,
	},
}
