#!/bin/sh
# cgit, the page of a git repository: Atom
# Guess: all agrees; the id is the URL of the commit
# Seen: as guessed
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb cgit 1.2.3+git20221219.50.91f2590+git2.39.1-1
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@a.example GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@a.example
git init -q r
commit() { GIT_AUTHOR_DATE="$2T10:00:00Z" GIT_COMMITTER_DATE="$2T10:00:00Z" git -C r commit -q --allow-empty -m "$1" ${3+"$3"}; }
printf 'virtual-root=/\nrepo.url=r\nrepo.path=%s/r/.git\n' "$PWD" >conf
export CGIT_CONFIG="$PWD/conf"
commit One 2026-01-01
commit 'Two <b> & more' 2026-01-02
serve --cgi /usr/lib/cgit/cgit.cgi
follow "$URL/r/atom/?h=master"
step 'first fetch' 'One|Two <b> & more'
commit Three 2026-01-03
step 'new commit' Three
commit Four 2026-01-02
step 'commit, dated back' Four
commit Fünf 2026-01-02 --amend
step amended Fünf
git -C r reset -q --hard HEAD~1
step withdrawn ''
moved "http://localhost:${URL##*:}/r/atom/?h=master"
step 'another host' ''
now 'Four|Fünf|One|Three|Two <b> & more'
row
