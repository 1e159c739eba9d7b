#!/bin/sh
# blosxom, a blog of text files by CGI: RSS
# Guess: all agrees but edits, which change the date, since the file's date is the entry's
# Seen: all agrees but a new day, which is in the link, so that it counts as an edit
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb blosxom 2.1.2-2.1
mkdir posts
cp /usr/lib/cgi-bin/blosxom cgi
cat >conf <<P
\$blog_title = 's'; \$blog_url = 'http://a.example'; \$datadir = "$PWD/posts"; \$num_entries = 40;
\$plugin_dir = ''; \$file_extension = 'txt'; \$default_flavour = 'html'; \$show_future_entries = 1;
1;
P
export BLOSXOM_CONFIG_FILE="$PWD/conf"
post() { printf '%s\n<p>%s</p>\n' "$2" "$4" >"posts/$1.txt" && touch -d "$3T10:00:00Z" "posts/$1.txt"; }
post one One 2026-01-01 'The first text.'
post two 'Two & more' 2026-01-02 'The second text.'
serve --cgi "$PWD/cgi"
follow "$URL/index.rss"
step 'first fetch' 'One|Two & more'
post three 'Three' 2026-01-04 'The third text.'
step 'new post' Three
post one One 2026-01-05 'The first text, corrected.'
step edited One
post one Uno 2026-01-05 'The first text, corrected.'
step retitled Uno
known redated 'Two & more' "blosxom's link has the day, so that it is an edit of the same entry"
post two 'Two & more' 2026-01-03 'The second text.'
step redated ''
rm posts/two.txt
step withdrawn ''
sed -i 's,http://a.example,https://a.example,' conf
step 'http to https' ''
sed -i 's,https://a.example,https://b.example,' conf
step 'another host' ''
now 'Three|Two & more|Uno'
row
