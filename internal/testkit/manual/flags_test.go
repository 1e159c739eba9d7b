package manual

import (
	"slices"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/lektordir/lektor/internal/command"
)

func app() *cli.App {
	return &cli.App{
		Name:  "x",
		Flags: []cli.Flag{command.DirFlag(), &cli.BoolFlag{Name: "all", Aliases: []string{"a"}}},
		Commands: []*cli.Command{
			{Name: "add", Flags: []cli.Flag{&cli.BoolFlag{Name: "first"}, &cli.BoolFlag{Name: "secret", Hidden: true}}},
			{Name: "update", Flags: []cli.Flag{&cli.BoolFlag{Name: "all", Aliases: []string{"a"}}, &cli.DurationFlag{Name: "gap"}, command.NulFlag()}},
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

func TestCompare(t *testing.T) {
	for _, tc := range []struct {
		name, page string
		want       []string
	}{
		{"sections", good, nil},
		{"items", items, nil},
		{"everything is missing", ".Sh X\n", []string{
			"--all is not documented", "--dir is not documented", "-a is not documented",
			"add --dir is not documented", "add --first is not documented",
			"the command add is not documented", "the command update is not documented",
			"update --all is not documented", "update --dir is not documented", "update --gap is not documented",
			"update --null is not documented", "update -0 is not documented", "update -a is not documented",
		}},
		{"in the wrong place", good + ".Ss add\n.Bl\n.It Fl -gap\n.It Fl -gone\n.El\n.Sh Y\n.Bl\n.It Fl -nowhere\n.El\n", []string{
			"--nowhere is documented but not taken", "add --gap is documented but not taken", "add --gone is documented but not taken",
		}},
	} {
		if got := compare(app(), tc.page); !slices.Equal(got, tc.want) {
			t.Errorf("%s:\n got %q\nwant %q", tc.name, got, tc.want)
		}
	}
}
