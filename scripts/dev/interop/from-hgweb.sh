#!/bin/sh
# hgweb, the page of a Mercurial repository: Atom and RSS
# Guess: the title of the last changeset loses its branch with the next one, which counts as an edit
#  (findings/hgweb-head-title.sh); all else agrees
# Seen: as guessed; with on-update deliver each changeset comes twice
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb mercurial 6.3.2-1+deb12u1
export HGRCPATH=/dev/null HGUSER='a <a@a.example>' PYTHONDONTWRITEBYTECODE=1
hg init r
commit() { echo "$1" >r/f; hg -R r commit -qAm "$@"; }
cat >hgweb.py <<'P'
from mercurial import demandimport; demandimport.enable()
from mercurial.hgweb import hgweb, wsgicgi
wsgicgi.launch(hgweb(b"r"))
P
why='hgweb puts the branch before the title of its head only'
known 'new changeset' 'Two <b> & more|[default] Three' "$why"
known 'changeset, dated back' 'Three|[default] Four' "$why"
commit One -d '2026-01-01 10:00 +0000'
commit 'Two <b> & more' -d '2026-01-02 10:00 +0000'
serve --cgi "$(command -v sh)" -c "cd $PWD && exec /usr/bin/python3 hgweb.py"
follow "$URL/atom-log"
step 'first fetch' 'One|[default] Two <b> & more'
commit Three -d '2026-01-03 10:00 +0000'
step 'new changeset' '[default] Three'
commit Four -d '2026-01-02 10:00 +0000'
step 'changeset, dated back' '[default] Four'
commit Fünf --amend
step amended '[default] Fünf'
hg -R r --config extensions.strip= strip -q tip
step withdrawn ''
moved "http://localhost:${URL##*:}/atom-log"
step 'another host' ''
now 'One|Two <b> & more|[default] Four|[default] Fünf|[default] Three'
row
