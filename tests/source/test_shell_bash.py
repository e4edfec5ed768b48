"""The reader and bash agree on what small scripts pass."""

from __future__ import annotations

import pathlib

import pytest
from bash_runs import needs_bash, run, shown
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = needs_bash

SNIPPETS = r"""
show a 'b c' "d e" f\ g 'a'"b"c "" ''
---
show a\
b c \
  d
---
X=1; show $X "$X" '$X' \$X "\$X" "${X}y" "$X"y
---
X="a  b"; show $X "$X" pre$X"post"$X
---
X="  a  b  "; show [$X] x$X
---
X=; show $X "$X" a$X ${X}b
---
show ${X:-y} "${X:-y z}" ${X:-y z} ${X:-"y z"} ${X-} "${X-}" ${X:+no} "${X:+no}"
---
X=v; show ${X:-y} ${X:+yes} ${X+yes} "${X:+a b}" ${X:+a b}
---
X=; show ${X:-y} ${X-y} "${X-y}" ${X:+n} ${X+y}
---
show ${X:=5} $X ${X:=6}
---
: ${X:=a b}; show $X "$X"
---
X=${X:-${Y:-z}}; show $X
---
P=/a/b/c.tar.gz; show ${P##*/} ${P#*/} ${P%.*} ${P%%.*} ${P%/*} "${P##*.}"
---
P=aXbXc; show ${P/X/-} ${P//X/-} ${P/X} ${P//[XY]/_} ${P/#a/z} ${P/%c/z}
---
P=a.b.c; show ${P//./_} ${P//a.b/q}
---
P=MiXed; show ${P,,} ${P^^} ${P,} ${P^} ${#P} ${P:1} ${P:1:2} ${P: -2} ${P:0:-1}
---
N=P; P=val; show ${!N}
---
A=(a "b c" d); show ${A[@]} "${A[@]}" "${A[*]}" ${A[1]} "${A[1]}" ${#A[@]} $A "${A[-1]}" ${A[@]:1} "${A[@]:1:1}" ${!A[@]}
---
A=(); show "${A[@]}" x"${A[@]}"y ${#A[@]}
---
A=(a); A+=(b "c d"); A[5]=e; show "${A[@]}" ${!A[@]}
---
A=(1 2); show "x${A[@]}y" x${A[@]}y
---
A=(
  --a 1   # comment
  # another
  --b "2 3" \
  --c
); show "${A[@]}"
---
A=([2]=x [0]=y); show "${A[@]}"
---
declare -A M=([k]=v ["a b"]="c d"); M[z]=1; show "${M[k]}" "${M[a b]}" ${M[z]} ${#M[@]}
---
declare -A M; M["x"]=1; k=x; show ${M[$k]} "${M["x"]}"
---
X=a; X+=b; X+="c d"; show "$X"
---
declare -i N=3; N+=4; show $N
---
show $((1+2*3)) $(( (1+2)*3 )) $((7/2)) $((-7/2)) $((7%3)) $((2**10)) $((1<<4)) $((5>3)) $((5==3)) $((3?4:5)) $((0x10)) $((010))
---
N=8; M=2; show $((N*M)) $(($N*$M)) $((N/=2)) $N $((N++)) $N $((++N)) $((N-=1)) $[N+1]
---
N=8; show --x=$((N * (M + 2))) "$(((N)))"
---
let "Q = 5 + 2"; show $Q; (( Q += 3 )); show $Q
---
show {a,b}c x{1..3} {3..1} {01..03} {a..c} {a,{b,c}}d {x} {a,b "{a,b}" '{a,b}' a{,b} {1..10..3} ${X:-{a,b}}
---
X=1; show {$X,b} {a,"b c"} {a,b}{1,2}
---
show a=['x','y'] b={a: b} 'k={a: b}' "+k=\"v\"" k='["a","b"]' --x={} @ % ^ + ~x a~ =
---
show "a b"'c'$'d\te' $'\x41\u00e9\'' $"loc"
---
show `echo hi` $(echo "a b") "$(echo "a b")" $(printf '%s-%s' x y) "$(printf 'a\nb\n\n')"
---
show $(basename /a/b.sh .sh) $(dirname /a/b/c) $(basename /a/b/) $(dirname x) $(dirname /x)
---
X=$(cat <<EOT
line 1 $((1+1))
 line 2
EOT
); show "$X" $X
---
X=$(cat <<'EOT'
$NOT \x
EOT
); show "$X"
---
cat <<-EOT
	x
	EOT
show after
---
for i in 1 2 "3 4"; do show $i; done
---
for i in {1..3}; do for j in a b; do show $i$j; done; done; show $i$j
---
for ((i=0;i<3;i++)); do show $i; done; show $i
---
i=0; while [ $i -lt 3 ]; do show $i; i=$((i+1)); done
---
i=0; until [[ $i -ge 2 ]]; do show $i; ((i++)); done
---
for i in 1 2 3 4; do if [ $i = 2 ]; then continue; fi; if [ $i = 4 ]; then break; fi; show $i; done
---
for i in 1 2; do for j in 1 2; do [ $j = 2 ] && continue 2; show $i $j; done; done
---
i=0; while true; do i=$((i+1)); if [ $i -gt 2 ]; then break; fi; show $i; done
---
if [ a = a ]; then show yes; else show no; fi; if [ a = b ]; then show yes; elif [[ x == x* ]]; then show elif; else show no; fi
---
X=abc; [[ $X == a* ]] && show 1; [[ $X == "a*" ]] || show 2; [[ $X != b* && -n $X ]] && show 3
[[ -z $X || $X < b ]] && show 4; [[ ! -z $X ]] && show 5
---
[ -n "" ] || show 1; [ -z "" ] && show 2; [ 1 -lt 2 -a 2 -lt 3 ] && show 3; test x != y && show 4; [ ! a = b ] && show 5
[ "" ] || show 6; [ x ] && show 7
---
N=5; [[ N -gt 3 ]] && show 1; [[ $N -eq 5 ]] && show 2; ((N > 3)) && show 3; ((N < 3)) || show 4
---
[[ -v X ]] || show unset; X=; [[ -v X ]] && show set
---
case abc in a) show 1;; a*|b) show 2;; *) show 3;; esac; case "$X" in "") show empty;; *) show other;; esac
---
case x in x) show 1;& y) show 2;; z) show 3;; esac
---
case a.yaml in *.yml|*.yaml) show yaml;; esac; case 5 in [0-9]) show digit;; esac; case ab in ?b) show q;; esac
---
f() { show "$@" $# $1; }; f a "b c"; f; function g { local X=in; show $X; }; X=out; g; show $X
---
f() { X=changed; }; X=1; f; show $X; g() { return 3; }; g || show failed $?; h() { show $1; shift; show $1 $#; }; h a b c
---
f() { echo "out $1"; }; show "$(f 1)" $(f 2)
---
f() { local a=$1 b=$2; show $a$b; [ $a = 0 ] || f $((a-1)) $b; }; show start
---
set -- a "b c" d; show $1 "$2" $# "$@" "$*"; shift 2; show $@; set --; show "$@" $#
---
X=1; (X=2; show $X); show $X; { X=3; }; show $X
---
X=1 show a; show $X; A=5 B=6 show x
---
export X=5 Y="a b"; bash -c 'show $X "$Y" $1' zero one; Z=1; bash -c 'show "$Z"'
---
bash -c "show in 'a b'"; sh -c 'show $1' x y
---
CMD="show -m mod"; $CMD a b; ARGS="--a 1 \
 --b 2"; show $ARGS
---
ARGS="
  --a 1 \
  --dir="x y" \
"; show $ARGS
---
ARGS='--a "b c"'; show $ARGS; eval "show $ARGS"; eval show $ARGS
---
X=1; eval "X=2; show \$X"; show $X; eval 'for i in 1 2; do show $i; done'
---
show a # comment
show b#not '#' "#"
# whole line
show c \
  # ends it
show d
---
show a \ # blank
show b
---
show a | cat; show b 2>&1 | tee /dev/null; show c > /dev/null 2>&1; show d >/dev/null e; 2>/dev/null show f
---
show a && show b || show c; false && show d || show e; true || show f; ! true && show g; ! false && show h
---
show a; show b & wait; show c
---
exit_it() { exit 3; }; show a; (exit 2); show b; exit_it; show c
---
set -e; show a; false || true; if false; then :; fi; show b; false; show c
---
set -e; [ a = b ] && show x; show y
---
trap 'echo bye' EXIT; show a
---
IFS=,; X="a,b c,,d"; show $X "$X"; unset IFS; show $X
---
IFS=: read -r a b c <<< "1:2:3 4"; show $a $b "$c"; read x y <<< "p q r"; show $x "$y"; IFS=',' read -ra L <<< "u,v w"
show "${L[@]}"
---
read -r -d '' V <<'EOT' || true
a
b
EOT
show $V
---
X=a; unset X; show "$X" ${X:-d}; readonly R=1; show $R
---
printf -v V '%03d' 7; show $V; show $(seq 3) $(seq 2 4) $(seq 1 2 5)
---
show "$(echo a; echo b)" $(echo -n x)y $(true)
---
env A=1 show x; command show y; nohup show z 2>/dev/null; exec show w; show never
---
time show a; timeout 5 show b; nice -n 5 show c
---
X='a*b'; show "$X"; show 'q?' [z] "*"
---
X="a'b"; show "$X" $X "it's" 'say "hi"' \" \'
---
show "a\nb" 'a\nb' "a\\b" "a\"b" "a\`b" a\\b
---
show "multi
line" 'x
y'
---
show ${A:-a}${B:-b} "${A:-"q r"}" "${A:-'s t'}" ${A:-'u v'} "${A:-$(echo c d)}" ${A:-\}}
---
X=a.b; show ${X%.*}.${X##*.} "${X/./ }" ${X/./ }
---
A=(a.x b.x); show "${A[@]%.x}" ${A[@]/#/--} ${#A[0]}
---
A=(one two); B=("${A[@]}" three); show "${#B[@]}" "${B[@]}"; for x in "${B[@]}"; do show $x; done; for i in "${!B[@]}"
do show $i; done
---
X="1 2 3"; A=($X); show ${#A[@]} ${A[2]}; for x in $X; do show $x; done
---
local_test() { local -a L=(a b); L+=(c); show "${L[@]}"; }; local_test; show "${L[@]}"
---
f() { local X; X=5; g; }; g() { show $X; }; f; show "$X"
---
[ "${DEBUG:-0}" = 1 ] && show debug || show plain; if [ -n "$NOPE" ]; then show set; else show unset; fi
---
X=${1:-dflt}; Y=${2:-"$X/sub"}; show $X $Y $# "$@"; if [ $# -lt 1 ]; then show few; fi
---
show $UNSET "$UNSET" a$UNSET"b" key=$UNSET
---
X=1; Y=X; show ${!Y}; show "${X}_${Y}" $X_ ${X}_
---
if true; then
  show then
fi
{ show group; }
( show sub )
! show neg
---
while read -r line; do show $line; done < /dev/null; show end
---
source /nonexistent/file.sh; show after
---
show <<EOT
ignored
EOT
show next
---
show a;show b;
show c ;
---
X=$'a\nb'; show $X "$X"
---
X=abc
Y=${X}d Z=$Y
show $Z
---
[[ abc =~ ^a(b)c$ ]] || true; show ok
---
arr=(x); arr[1]+=y; arr[0]+=z; show "${arr[@]}"
---
f() { show "${@:2}" "${@:1:1}"; }; f a b c
---
show "$@" x $@ y "$*"
---
x=5; x=$((x > 3 ? x - 1 : 0)); show $x
---
a=1,b=2; show $a; show -x=1 a=b=c
---
show ${X:-a:b/c} "${X:-}" ${X:+}
---
select_case() { case $1 in start|run) show run;; -*) show opt ${1#-};; *) show "?$1";; esac; }; select_case run
select_case -v; select_case zz
---
function now() { echo fixed; }
show "$(now)"
---
show a \

show b
---
show $(echo '$HOME') "$(echo "it's")" '`x`'
---
cd /tmp && show x; mkdir -p "$X" 2>/dev/null; show y
---
x=(a b c); unset 'x[1]'; show "${x[@]}" ${#x[@]}
---
export A; export B=2; declare -x C=3; bash -c 'show "$B$C"'
---
show "${X:-{"a"}}" end
---
A="x"; A="${A} y"; A="$A z"; show $A
---
show -c "print('hi')" 'a;b' "c|d" e\;f
---
show a\	b "tab	x"
""".strip("\n").split("\n---\n")


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_a_snippet_is_read_as_bash_runs_it(snippet: str, tmp_path: pathlib.Path) -> None:
    expected = run(snippet, tmp_path)
    assert shown(snippet) == expected


def test_every_snippet_shows_something(tmp_path: pathlib.Path) -> None:
    assert all(run(snippet, tmp_path) for snippet in SNIPPETS[:10])


PLAIN = st.sampled_from(["a", "b1", "--x", "k=v", "x.y=1", "[c]", "/p/q", "-", ".", ",", "}", "{", "#x", "a#", "%", "é", "="])
SINGLE = st.sampled_from(["'a b'", "''", "'$X'", "'\"'", "'\\'", "'#'"])
DOUBLE_INSIDE = st.sampled_from(
    ["a", " ", "$X", "${Y:-d e}", "'", '\\"', "\\$", "${A[@]}", "$((N+1))", "$(echo z w)", "${X#a}", "*"]
)
DOUBLE = st.lists(DOUBLE_INSIDE, max_size=4).map(lambda parts: '"' + "".join(parts) + '"')
EXPANSION = st.sampled_from(
    [
        "$X", "${X}", "$Y", "${Y:-d e}", '${Y:-"d e"}', "${X:+p q}", "${X/a/z z}", "${X%b}", "${A[@]}", "${A[*]}", "${A[1]}",
        "$((N*2))", "$(echo u v)", "${#X}", "${X:1}",
        "${Y-}", "${X^^}", "\\ ", "\\a", "\\\n", "{p,q}", "{1..3}", "${N}", "`echo w`", "$E",
    ]
)  # fmt: skip
WORD = st.lists(st.one_of(PLAIN, SINGLE, DOUBLE, EXPANSION), min_size=1, max_size=4).map("".join)
HEAD = "X='a  b'\nA=(one 'two three' '')\nN=4\nE=\n"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(words=st.lists(st.lists(WORD, min_size=1, max_size=5).map(" ".join), min_size=8, max_size=8))
def test_words_put_together_at_random_are_read_as_bash_reads_them(words: list[str], tmp_path: pathlib.Path) -> None:
    snippet = HEAD + "".join(f"show {line}\nshow end\n" for line in words)
    assert shown(snippet) == run(snippet, tmp_path), snippet
