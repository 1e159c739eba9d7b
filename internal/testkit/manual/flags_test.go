package manual

import (
	"slices"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/lektordir/lektor/internal/cli/cmdline"
)

func app() *cli.App {
	return &cli.App{
		Name:  "x",
		Flags: []cli.Flag{cmdline.DirFlag(), &cli.BoolFlag{Name: "all", Aliases: []string{"a"}}},
		Commands: []*cli.Command{
			{Name: "add", Flags: []cli.Flag{&cli.BoolFlag{Name: "first"}, &cli.BoolFlag{Name: "secret", Hidden: true}}},
			{Name: "update", Flags: []cli.Flag{&cli.BoolFlag{Name: "all", Aliases: []string{"a"}}, &cli.DurationFlag{Name: "gap"}, cmdline.NulFlag()}},
		},
	}
}

const good = `.Sh OPTIONS
.Bl -tag
.It Fl -dir Ns = Ns Ar DIR
x
.It Fl 0 , Fl -null
.El
.Ss x add Ar url
.Bl -tag
.It Fl \-first
.El
.Ss update
.Bl -tag
.It Xo
.Fl a ,
.Fl -all
.Xc
.It Fl Fl gap Ns = Ns Ar D
.It Fl -help
.El
.Sh EXIT STATUS
.Bl -tag
.It 0
add
.El
`

const items = `.Sh COMMANDS
.Bl -tag
.It Cm add Ar URL
text
.Bl -tag
.It Fl -first
.El
.It Ic update Op Fl a
.Bl -tag
.It Fl a | Fl -all
.It Fl -gap Ar D
.It Fl 0 , -null
.El
.El
.Sh OPTIONS
.Bl -tag
.It Fl -dir= Ns Ar DIR
.It Fl -null
.El
`

const (
	apart  = ".Ss add\n.Bl\n.It Fl -dir Ar DIR\n.It Fl -first\n.El\n.Ss update\n.Xr x-update 1\n"
	update = ".Sh X\n.Xr x 1\n.Bl\n.It Fl a , Fl -all\n.It Fl -gap\n.It Fl 0 , Fl -null\n.It Fl -dir\n.El\n"
)

func TestCompare(t *testing.T) {
	for _, tc := range []struct {
		name, page string
		own        map[string]string
		want       []string
	}{
		{"sections", good, nil, nil},
		{"items", items, nil, nil},
		{"a page of its own", apart, map[string]string{"update": update}, nil},
		{"pages of their own that are wrong", items, map[string]string{"update": ".It Fl -first\n", "gone": ""}, []string{
			"the page of gone is about no command", "the page of update does not name x(1)",
			"update --first is documented but not taken", "x(1) does not name the page of update",
		}},
		{"everything is missing", ".Sh X\n", nil, []string{
			"--all is not documented", "--dir is not documented", "-a is not documented",
			"add --dir is not documented", "add --first is not documented",
			"the command add is not documented", "the command update is not documented",
			"update --all is not documented", "update --dir is not documented", "update --gap is not documented",
			"update --null is not documented", "update -0 is not documented", "update -a is not documented",
		}},
		{"in the wrong place", good + ".Ss add\n.Bl\n.It Fl -gap\n.It Fl -gone\n.El\n.Sh Y\n.Bl\n.It Fl -nowhere\n.El\n", nil, []string{
			"--nowhere is documented but not taken", "add --gap is documented but not taken", "add --gone is documented but not taken",
		}},
	} {
		if got := compare(app(), tc.page, tc.own); !slices.Equal(got, tc.want) {
			t.Errorf("%s:\n got %q\nwant %q", tc.name, got, tc.want)
		}
	}
}
