#!/bin/sh
# elfeed, a reader in Emacs: Atom and RSS
# Guess: all agrees
# Seen: it opens the audio or the guid if there is no link, and lists one person twice (findings/author-and-creator-twice.sh)
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb elpa-elfeed 3.4.1-1
cat >read.el <<'L'
(require 'elfeed)
(setf elfeed-db-directory "db")
(let* ((name (car command-line-args-left)) (n 0)
       (xml (with-temp-buffer (insert-file-contents name) (elfeed-xml-parse-region)))
       (read (if (eq (elfeed-feed-type xml) :atom) #'elfeed-entries-from-atom #'elfeed-entries-from-rss)))
  (dolist (e (funcall read "http://a.example/feed" xml))
    (setf n (1+ n))
    (let ((say (lambda (name v) (princ (format "%d %s\t%s\n" n name (or v ""))))))
      (funcall say "title" (elfeed-entry-title e))
      (funcall say "link" (elfeed-entry-link e))
      (funcall say "id" (cdr (elfeed-entry-id e)))
      (funcall say "date" (format-time-string "%Y-%m-%dT%H:%M:%SZ" (elfeed-entry-date e) t))
      (dolist (a (elfeed-meta e :authors)) (funcall say "author" (plist-get a :name)))
      (dolist (c (elfeed-meta e :categories)) (funcall say "category" c))
      (dolist (x (elfeed-entry-enclosures e)) (funcall say "enclosure" (mapconcat (lambda (v) (format "%s" v)) x " ")))
      (funcall say "text" (replace-regexp-in-string "&lt;" "<" (replace-regexp-in-string "&gt;" ">"
        (replace-regexp-in-string "<[^>]*>" "" (elfeed-deref (elfeed-entry-content e)))))))))
L
entries() { emacs -Q --batch -L /usr/share/emacs/site-lisp/elpa-src/elfeed-3.4.1 -l read.el "site/feed.$1" 2>/dev/null; }
known 'atom 3 link' 'https://a.example/2.mp3?x=1&y=2' 'without another link it takes the audio for the article'
known 'rss 3 link' urn:x:2 'without a link it takes the guid for one, though it says isPermaLink="false"'
known 'rss 2 author' 'Ann, B.|Ann, B.' 'it lists author and dc:creator, which are one person, as two'
reads 'atom rss' 'title link id date author category enclosure text'
row
