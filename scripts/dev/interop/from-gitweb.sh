#!/bin/sh
# gitweb, the page of a git repository: Atom and RSS, with the date of the newest commit
# Guess: a commit with an earlier date is missed until the next one (findings/gitweb-last-modified-back.sh)
# Seen: all agrees: the new date beside 304 makes lektor-fetch ask again
# shellcheck source=scripts/dev/interop/lib disable=SC2016
. "$(dirname "$0")/lib"
deb gitweb 1:2.39.5-0+deb12u3
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@a.example GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@a.example
mkdir p
git init -q p/r
commit() { GIT_AUTHOR_DATE="$2T10:00:00Z" GIT_COMMITTER_DATE="$2T10:00:00Z" git -C p/r commit -q --allow-empty -m "$1" ${3+"$3"}; }
printf '$projectroot = "%s/p";\n' "$PWD" >conf
export GITWEB_CONFIG="$PWD/conf"
commit One 2026-01-01
commit 'Two <b> & more' 2026-01-02
serve --cgi /usr/lib/cgi-bin/gitweb.cgi
follow "$URL/?p=r/.git;a=atom"
step 'first fetch' 'One|Two <b> & more'
commit Three 2026-01-03
step 'new commit' Three
commit Four 2026-01-02
step 'commit, dated back' Four
commit Five 2026-01-04
step 'newer commit' Five
commit Fünf 2026-01-05 --amend
step amended Fünf
git -C p/r reset -q --hard HEAD~1
step withdrawn ''
moved "http://localhost:${URL##*:}/?p=r/.git;a=atom"
step 'another host' ''
moved "$URL/?p=r/.git;a=rss"
step 'RSS for Atom' ''
now 'Five|Four|Fünf|One|Three|Two <b> & more'
row
