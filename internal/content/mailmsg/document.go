package mailmsg

import (
	"github.com/lektordir/lektor/internal/content/htmlsafe"
)

// Styles are attributes of the elements, because mail programs remove style elements.
const (
	styleBody  = "margin: 0 auto; max-width: 46em; padding: 0 1em 2em; font: 100%/1.5 system-ui, sans-serif; overflow-wrap: anywhere"
	styleTitle = "font-size: 1.4em; line-height: 1.25"
	styleFeed  = "font-size: 1.2em; margin: 1.6em 0 .4em; border-bottom: 1px solid #c8c8c8"
	styleEntry = "font-size: 1em; margin: 1.2em 0 .2em"
	styleMeta  = "color: #6b6b6b; font-size: .9em"
)

// Document returns a complete, self-contained HTML document. title is plain text, body is HTML, and
// language is a language tag or "". Its content security policy forbids scripts and all loading, except
// of images if images is set, even if harmful markup was not removed.
func Document(title, language, body string, images bool) string {
	head, foot := frame(title, language, images)
	return head + body + foot
}

// frame returns the text before and after the body of a [Document].
func frame(title, language string, images bool) (head, foot string) {
	policy := "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
	if images {
		policy += "; img-src http: https:"
	}
	title, _ = Brief(title)
	return "<!DOCTYPE html>\n<html" +
		Lang(language) + ">\n<head>\n<meta charset=\"utf-8\">\n<title>" + htmlsafe.Text(title) + `</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta http-equiv="Content-Security-Policy" content="` + policy + "\">\n</head>\n<body style=\"" + styleBody + "\">\n", "</body>\n</html>\n"
}
