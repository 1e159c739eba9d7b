package feedconv

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/feedconv/internal/vocab"
)

// maxRootNamespaces is the maximum number of extension namespaces that are declared at the root;
// further ones are declared on the elements that use them.
const maxRootNamespaces = 64

// namespacesOf declares the namespaces that the extensions of a feed use, in the order of their
// appearance.
func (x *xmlWriter) namespacesOf(f *Feed, entries *survey) {
	if entries.podcast {
		x.declare(vocab.ITunes.URI())
	}
	if entries.replies {
		x.declare(vocab.Thr.URI())
	}
	var own survey
	own.declares(f.Attributes, f.Extensions)
	for _, uri := range slices.Concat(own.namespaces, entries.namespaces) {
		x.declare(uri)
	}
}

// declare chooses a prefix for a namespace, the usual one if it is free, and declares it.
func (x *xmlWriter) declare(uri string) {
	if _, ok := x.prefixes[uri]; ok || uri == "" || uri == vocab.XML.URI() || len(x.declared) >= 2*maxRootNamespaces {
		return
	}
	prefix := ""
	if ns, ok := vocab.Find(vocab.Normal(uri)); ok && ns != vocab.XML {
		prefix = ns.Prefix()
	}
	if prefix == "" || x.taken[prefix] {
		prefix = "n" + strconv.Itoa(len(x.taken)+1)
	}
	x.use(prefix, uri)
}

// use declares a namespace with a prefix.
func (x *xmlWriter) use(prefix, uri string) {
	x.prefixes[uri] = prefix
	x.taken[prefix] = true
	x.declared = append(x.declared, "xmlns:"+prefix, uri)
}

// qualified returns a name with its prefix. If the namespace is not declared at the root, its
// declaration is appended to declarations, for the element itself.
func (x *xmlWriter) qualified(uri, name string, declarations []string) (string, []string) {
	if !validName(name) {
		x.fail(fmt.Errorf("%q is not a valid XML name", name))
		name = "_"
	}
	switch prefix, ok := x.prefixes[uri]; {
	case uri == "":
		return name, declarations
	case uri == vocab.XML.URI():
		return "xml:" + name, declarations
	case ok:
		return prefix + ":" + name, declarations
	}
	for i := 1; i < len(declarations); i += 2 {
		if declarations[i] == uri {
			return declarations[i-1][len("xmlns:"):] + ":" + name, declarations
		}
	}
	prefix := "x" + strconv.Itoa(len(declarations)/2+1)
	return prefix + ":" + name, append(declarations, "xmlns:"+prefix, uri)
}

// attributes writes the attributes of an element, and the declarations that it needs. Empty values
// are written. If a name is repeated, only the first is written.
func (x *xmlWriter) attributes(list []Attribute, declarations []string) {
	written := make(map[string]bool, len(list))
	for _, a := range list {
		var name string
		if name, declarations = x.qualified(a.Namespace, a.Name, declarations); !written[name] {
			written[name] = true
			x.attribute(name, a.Value)
		}
	}
	for i := 0; i+1 < len(declarations); i += 2 {
		x.attribute(declarations[i], declarations[i+1])
	}
}

// openWith is like open, for the element of a feed or an entry, and adds attributes of other
// vocabularies.
func (x *xmlWriter) openWith(name string, list []Attribute, attributes ...string) {
	x.start(name, attributes)
	for _, a := range list {
		if a.Namespace == "" {
			x.fail(fmt.Errorf("the attribute %q of a feed or an entry has no namespace", a.Name))
			list = nil
			break
		}
	}
	if len(list) > 0 {
		x.attributes(list, nil)
	}
	x.w.WriteString(">\n")
	x.depth++
}

// extensions writes the extensions of a feed or an entry. It omits elements that Parse would read
// as the format's own or into a field.
func (x *xmlWriter) extensions(list []Extension, place vocab.Place) {
	for i := range list {
		e := &list[i]
		ns, known := vocab.Find(vocab.Normal(e.Namespace))
		switch {
		case e.Namespace == "":
			x.fail(fmt.Errorf("the extension %q of a feed or an entry has no namespace", e.Name))
		case known && (ns == vocab.XML || ns == vocab.RDF || x.atom && ns.Family() == vocab.Atom || !x.atom &&
			ns.Family() == vocab.RSS),
			known && vocab.HasField(ns, strings.ToLower(e.Name), place, x.atom):
		default:
			x.indent()
			x.extension(e, "")
			x.w.WriteByte('\n')
		}
	}
}

// extension writes an element without white space that is not its own. parent
// is the namespace of the element around it.
func (x *xmlWriter) extension(e *Extension, parent string) {
	if e.Name == "" {
		x.w.WriteString(escaped(e.Text))
		return
	}
	name, declarations := x.qualified(e.Namespace, e.Name, nil)
	x.w.WriteString("<" + name)
	if e.Namespace == "" && parent != "" && x.atom {
		x.w.WriteString(` xmlns=""`)
	}
	if len(e.Attributes) > 0 || len(declarations) > 0 {
		x.attributes(e.Attributes, declarations)
	}
	if e.Text == "" && len(e.Children) == 0 {
		x.w.WriteString("/>")
		return
	}
	x.w.WriteByte('>')
	x.w.WriteString(escaped(e.Text))
	for i := range e.Children {
		x.extension(&e.Children[i], e.Namespace)
	}
	x.w.WriteString("</" + name + ">")
}
