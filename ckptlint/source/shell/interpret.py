"""Runs a script without running anything: every way it may take, with what is known on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ckptlint.source.shell import conditions, patterns, wrappers
from ckptlint.source.shell.builtins import BUILTINS, TRAPS_ERRORS, Unprintable
from ckptlint.source.shell.command import Condition, Loss, Neighbour, Notice, Place, Redirection
from ckptlint.source.shell.expand import MAX_PIECES, Composite, Expander, Segment, is_many, present
from ckptlint.source.shell.parser import parse
from ckptlint.source.shell.state import FAILURE, SUCCESS, State, Status, Trace, Variable, literal, merged_status
from ckptlint.source.shell.syntax import (
    AndOr,
    ArithmeticCommand,
    ArithmeticFor,
    Assignment,
    Case,
    Comment,
    Conditional,
    For,
    Function,
    Group,
    If,
    Item,
    Literal,
    Node,
    Parameter,
    Pipeline,
    ProcessSubstitution,
    Program,
    Redirect,
    Simple,
    Test,
    While,
    Word,
)
from ckptlint.source.shell.values import (
    Argument,
    Kind,
    Known,
    Piece,
    Unknown,
    Value,
    computed,
    default_text,
    places,
    strip_newlines,
    text_of,
)
from ckptlint.source.text import SourceText, Span

MAX_STATES = 64
MAX_STEPS = 6000
MAX_ROUNDS = 64
MAX_CALLS = 16
MAX_RECORDS = 4000
HOLE = "\ue000"  # stands for an unknown piece in a text that is read as a script


@dataclass(slots=True, eq=False)
class Record:
    """A command as it was met; what its failure does is known at the end."""

    number: int
    words: tuple[Argument, ...]
    argv: tuple[Argument, ...]
    assignments: Mapping[str, Value]
    exported: Mapping[str, Value]
    redirections: tuple[Redirection, ...]
    stdin: Value | None
    piped_into: tuple[tuple[Argument, ...], ...]
    directory: Value
    place: Place
    span: Span
    masks: list[str] = field(default_factory=list)
    pipeline: int | None = None
    last_stage: bool = True
    first_stage: bool = True
    as_shipped: bool = False


class Context(NamedTuple):
    """What surrounds a command."""

    place: Place = Place()
    guarded: bool = False
    alternative: bool = False
    condition: bool = False
    captured: bool = False
    stdin: Value | None = None
    piped_into: tuple[tuple[Argument, ...], ...] = ()
    pipeline: int | None = None
    last_stage: bool = True
    first_stage: bool = True
    calls: tuple[str, ...] = ()


class Interpreter(Expander):
    """One reading of one script."""

    def __init__(self, source: SourceText, neighbour: Neighbour | None) -> None:
        super().__init__()
        self.source = source
        self.neighbour = neighbour
        self.records: list[Record] = []
        self.keys: dict[object, int] = {}
        self.notices: list[Notice] = []
        self.reads: list[tuple[Span, tuple[Span, ...]]] = []
        self.reaching: set[int] = set()
        self.comments: tuple[Comment, ...] = ()
        self.steps = 0
        self.complete = True
        self.context = Context()
        self.pipelines = 0
        self.programs: dict[SourceText, Program] = {}
        self.prepared: dict[Assignment, Variable] = {}
        self.assigning = ""

    def run(self) -> list[State]:
        program = self.program(self.source)
        self.comments = program.comments
        try:
            states = self.items(program.items, [State()], Context())
        except RecursionError:
            states, self.complete = [], False
        for state in states:
            if program.error is not None and state.flow != "exit":
                state.status = FAILURE
            self.reaching |= state.status.commands | state.failures
        return states

    def program(self, source: SourceText) -> Program:
        found = self.programs.get(source)
        if found is None:
            found = self.programs[source] = parse(source, source in self.composites)
            if found.error is not None and source is self.source:
                span, problem = found.error
                self.notices.append(Notice(Loss.SYNTAX, span, (), problem))
        return found

    # -------------------------------------------------------------------------------------------- lists and ways

    def items(self, items: Sequence[Item], states: list[State], context: Context) -> list[State]:
        for item in items:
            going = [state for state in states if not state.flow]
            if not going:
                break
            stopped = [state for state in states if state.flow]
            for state in going:
                stopped += (
                    self.background(item.node, state, context) if item.background else self.node(item.node, state, context)
                )
            states = self.join(stopped)
        return states

    def join(self, states: list[State]) -> list[State]:
        """The ways apart, as far as they go on differently and are not too many."""
        if len(states) < 2:
            return states
        kept: list[State] = []
        for state in states:
            same = next((other for other in kept if other.same_as(state)), None)
            if same is None:
                kept.append(state)
            else:
                same.absorb(state)
        most = MAX_STATES if self.steps < MAX_STEPS // 3 else 2  # to come to the end, where the launch stands
        while len(kept) > most:
            last = kept.pop()
            target = next((state for state in kept[::-1] if state.flow == last.flow), None)
            if target is None:
                kept.append(last)
                break
            target.blend(last)
        return kept

    def node(self, node: Node, state: State, context: Context) -> list[State]:
        self.steps += 1
        if self.steps > MAX_STEPS or len(self.records) > MAX_RECORDS:
            self.complete = False
            return [state]
        return RUN[type(node)](self, node, state, context)

    def inside(self, state: State, context: Context, body: Callable[[State], list[State]]) -> list[State]:
        """Runs something in a shell of its own; what comes back is its status, output and commands."""
        child = state.copy()
        child.flow, child.failures = "", frozenset()
        ends = self.join(body(child))
        by_code: dict[int | None, list[State]] = {}
        for end in ends:
            end.status = end.status._replace(commands=end.status.commands | end.failures)
            by_code.setdefault(end.status.code, []).append(end)
        parents = [state, *(state.copy() for _ in range(len(by_code) - 1))]
        for parent, group in zip(parents, by_code.values(), strict=True):
            status = group[0].status
            for end in group[1:]:
                status = merged_status(status, end.status)
            parent.status, parent.trace = status, traced(group)
            parent.shipped = any(end.shipped for end in group)
            if context.captured:
                same = all(end.output == group[0].output for end in group)
                parent.output = group[0].output if same else (Unknown(Kind.BRANCH, "$(…)"),)
        return parents if by_code else []

    def settle(self, state: State, context: Context) -> None:
        """``set -e``: a failure ends the script, except where something asks for it."""
        if context.guarded or state.flow:
            return
        if "errexit" in state.options or TRAPS_ERRORS in state.options:
            if state.status.code not in (0, None) and "errexit" in state.options:
                state.flow = "exit"
            elif not state.status.inverted:
                state.failures |= state.status.commands

    def fork(self, state: State) -> tuple[State | None, State | None]:
        """The ways on which the last status is success, and failure."""
        status = state.status
        commands = status.commands
        if status.code is not None:
            return (state, None) if status.code == 0 else (None, state)
        other = state.copy()
        if status.default is not None:
            state.shipped = state.shipped and status.default == 0
            other.shipped = other.shipped and status.default != 0
        failing = state if status.inverted else other
        failing.failed |= commands
        state.failed |= status.suspects
        other.failed |= status.suspects
        state.status = Status(0, 0, commands if status.inverted else frozenset(), status.inverted)
        other.status = Status(1, 1, frozenset() if status.inverted else commands)
        return state, other

    # -------------------------------------------------------------------------------------------- compound commands

    def background(self, node: Node, state: State, context: Context) -> list[State]:
        before = len(self.records)
        place = context.place._replace(background=True, subshell=True)
        inner = context._replace(place=place, guarded=False, captured=False)
        ends = self.inside(state, inner, lambda child: self.node(node, child, inner))
        state.trace, state.shipped = traced(ends), any(one.shipped for one in ends)
        state.jobs |= state.status.commands | frozenset(range(before, len(self.records)))
        state.status = SUCCESS
        return [state]

    def group(self, node: Group, state: State, context: Context) -> list[State]:
        inner = self.redirected(node.redirects, state, context)
        if not node.subshell:
            return self.items(node.body, [state], inner)
        inner = inner._replace(place=inner.place._replace(subshell=True))
        states = self.inside(state, inner, lambda child: self.items(node.body, [child], inner))
        for one in states:
            self.settle(one, context)
        return states

    def redirected(self, redirects: Sequence[Redirect], state: State, context: Context) -> Context:
        """The context inside a compound command with redirections."""
        if not redirects:
            return context
        stdin = self.stdin(redirects, state) or context.stdin
        captured = context.captured and not any(to_file(redirect) for redirect in redirects)
        return context._replace(stdin=stdin, captured=captured)

    def if_(self, node: If, state: State, context: Context) -> list[State]:
        inner = self.redirected(node.redirects, state, context)
        done: list[State] = []
        going = [state]
        passed: list[Condition] = []
        for condition, body in node.arms:
            asked = self.items(condition, going, self.asking(inner))
            span = items_span(condition, node.span)
            going, taken = [], []
            for one in asked:
                if one.flow:
                    done.append(one)
                    continue
                yes, no = self.fork(one)
                taken += [yes] if yes is not None else []
                going += [no] if no is not None else []
            done += self.items(body, self.join(taken), self.under(inner, *passed, Condition(span, True)))
            passed.append(Condition(span, False))
            going = self.join(going)
        if node.otherwise is not None:
            done += self.items(node.otherwise, going, self.under(inner, *passed))
        else:
            for one in going:
                one.status = SUCCESS
            done += going
        return self.join(done)

    def asking(self, context: Context) -> Context:
        return context._replace(guarded=True, condition=True)

    def under(self, context: Context, *conditions: Condition) -> Context:
        return context._replace(place=context.place._replace(conditions=(*context.place.conditions, *conditions)))

    def and_or(self, node: AndOr, state: State, context: Context) -> list[State]:
        first = context._replace(guarded=True, alternative=context.alternative or node.operators[0] == "||")
        states = self.node(node.parts[0], state, first)
        for place, operator in enumerate(node.operators):
            following = node.operators[place + 1 : place + 2]
            span = Span(node.span.source, node.span.start, node.parts[place].span.end)
            inner = self.under(context, Condition(span, operator == "&&"))
            if following:
                alternative = context.alternative or following == ("||",)
                inner = inner._replace(guarded=True, alternative=alternative)
            states = self.next_part(node.parts[place + 1], operator, states, inner)
        return states

    def next_part(self, node: Node, operator: str, states: list[State], context: Context) -> list[State]:
        """The ways behind ``&& node`` or ``|| node``: those that ran it, and those that passed it by."""
        after: list[State] = []
        running: list[State] = []
        for one in states:
            if one.flow:
                after.append(one)
                continue
            yes, no = self.fork(one)
            go, stay = (yes, no) if operator == "&&" else (no, yes)
            after += [stay] if stay is not None else []
            running += [go] if go is not None else []
        for one in self.join(running):
            after += self.node(node, one, context)
        return self.join(after)

    def pipeline(self, node: Pipeline, state: State, context: Context) -> list[State]:
        if len(node.stages) == 1:
            states = self.node(node.stages[0], state, context._replace(guarded=True))
            return [self.inverted(one) if node.negated else one for one in states]
        self.pipelines += 1
        number = self.pipelines
        stages = [self.stage_words(stage, state) for stage in node.stages]
        statuses: list[Status] = []
        for place, stage in enumerate(node.stages):
            last = place == len(node.stages) - 1
            inner = context._replace(
                place=context.place._replace(subshell=True),
                piped_into=tuple(words for words in stages[place + 1 :] if words) + context.piped_into,
                pipeline=number,
                last_stage=last,
                first_stage=not place,
                captured=context.captured and last,
                stdin=self.piped_output(node.stages[place - 1], state) if place else context.stdin,
                guarded=True,
            )
            self.stage(stage, state, inner)
            statuses.append(state.status)
        state.pipe_statuses = tuple(status.commands for status in statuses)
        state.status = statuses[-1]
        if "pipefail" in state.options:
            state.status = failing_anywhere(statuses)
        if node.negated:
            self.inverted(state)
        else:
            self.settle(state, context)
        return [state]

    def stage(self, stage: Node, state: State, inner: Context) -> None:
        """Runs one program of a pipeline; its ways come together behind it."""
        ends = self.inside(state, inner, lambda child: self.node(stage, child, inner))
        state.trace, state.shipped = traced(ends), any(one.shipped for one in ends)
        for one in ends[1:]:
            state.status = Status(None, state.status.default, state.status.commands | one.status.commands)
            if inner.captured and state.output != one.output:
                state.output = (Unknown(Kind.BRANCH, "$(…)"),)

    def stage_words(self, stage: Node, state: State) -> tuple[Argument, ...]:
        if not isinstance(stage, Simple):
            return ()
        words = [word for word in stage.words if isinstance(word, Word)]
        if any(isinstance(part, ProcessSubstitution) or hasattr(part, "body") for word in words for part in word.parts):
            return ()
        return tuple(self.arguments(words, state.copy()))

    def piped_output(self, stage: Node, state: State) -> Value | None:
        """What ``echo`` of known text puts into a pipe; None when unknown."""
        if not isinstance(stage, Simple) or not stage.words or stage.redirects:
            return None
        words = self.stage_words(stage, state)
        if not words or words[0].text not in ("echo", "printf"):
            return None
        probe = state.copy()
        probe.output = ()
        try:
            BUILTINS[words[0].text](self, words, probe, Context(captured=True))
        except Unprintable:
            return None
        return probe.output

    def inverted(self, state: State) -> State:
        if state.flow:
            return state
        status = state.status
        code = None if status.code is None else int(not status.code)
        default = None if status.default is None else int(not status.default)
        state.status = Status(code, default, status.commands, not status.inverted, status.suspects)
        return state

    # -------------------------------------------------------------------------------------------- loops

    def for_(self, node: For, state: State, context: Context) -> list[State]:
        inner = self.looping(node.redirects, node.span, state, context)
        if node.words is None:
            words = self.arguments([Word((Parameter("@", node.span, True),), node.span)], state)
        else:
            words = self.arguments(node.words, state)
        self.reading(node.span, [piece for word in words for piece in word.pieces])
        states, done = [state], list[State]()
        state.status = SUCCESS
        for word in words[:MAX_ROUNDS]:
            if word.may_split:
                done += [self.unshipped(one.copy(), word) for one in states]
            for one in states:
                one.variables[node.name] = Variable(self.element(word))
            states = self.items(node.body, states, inner)
            states, left = self.after_round(states)
            done += left
            if not states:
                break
        return self.join([*states, *done])

    def unshipped(self, state: State, word: Argument) -> State:
        """The way around a loop over something unknown, which is the one as shipped if that is empty."""
        state.shipped = state.shipped and word.vanishes
        return state

    def element(self, word: Argument) -> Value:
        """What a loop's variable holds for one word."""
        if word.glob and not word.quoted:
            return (Unknown(Kind.GLOB, word.template(), span=word.span),)
        if is_many(word.pieces):
            piece = word.pieces[0]
            return (piece._replace(name="") if isinstance(piece, Unknown) else piece,)
        return word.pieces

    def looping(self, redirects: Sequence[Redirect], span: Span, state: State, context: Context) -> Context:
        inner = self.redirected(redirects, state, context)
        place = inner.place._replace(loops=inner.place.loops + 1, conditions=(*inner.place.conditions, Condition(span, None)))
        return inner._replace(place=place)

    def after_round(self, states: list[State]) -> tuple[list[State], list[State]]:
        """The ways that go round again, and those that leave the loop."""
        again: list[State] = []
        left: list[State] = []
        for state in states:
            if state.flow not in ("break", "continue"):
                (left if state.flow else again).append(state)
                continue
            state.levels -= 1
            ends = state.flow == "break" or state.levels > 0
            if state.levels <= 0:
                state.flow, state.levels = "", 0
            (left if ends else again).append(state)
        return again, left

    def while_(self, node: While, state: State, context: Context) -> list[State]:
        inner = self.looping(node.redirects, node.span, state, context)
        live, done = [state], list[State]()
        for round_ in range(MAX_ROUNDS):
            asked = self.items(node.condition, live, self.asking(inner))
            going: list[State] = []
            undecided = False
            for one in asked:
                if one.flow:
                    done.append(one)
                    continue
                undecided = undecided or one.status.code is None
                yes, no = self.fork(one)
                go, leave = (no, yes) if node.until else (yes, no)
                if leave is not None:
                    leave.status = SUCCESS
                    done.append(leave)
                going += [go] if go is not None else []
            if not going or (round_ and (undecided or any(not one.flow for one in done))):
                break
            live, left = self.after_round(self.items(node.body, self.join(going), inner))
            done += left
            if not live:
                break
        else:
            done += live
        return self.join(done or live)

    def arithmetic_for(self, node: ArithmeticFor, state: State, context: Context) -> list[State]:
        inner = self.looping(node.redirects, node.span, state, context)
        self.calculated(node.start, node.span, state)
        live, done = [state], list[State]()
        state.status = SUCCESS
        for round_ in range(MAX_ROUNDS):
            going: list[State] = []
            for one in live:
                number = self.truth(node.condition, one) if node.condition.parts else (1, 1)
                one.status = answered(*number)
                unknown = one.status.code is None
                yes, no = self.fork(one)
                if no is not None:
                    no.status = SUCCESS
                    done.append(no)
                if yes is not None and not (unknown and round_):
                    going.append(yes)
            if not going:
                break
            live, left = self.after_round(self.items(node.body, self.join(going), inner))
            done += left
            for one in live:
                self.calculated(node.step, node.span, one)
        else:
            done += live
        return self.join(done)

    def truth(self, expression: Word, state: State) -> tuple[int | None, int | None]:
        """The number of an expression, and the number in an empty environment."""
        value = self.calculated(expression, expression.span, state)
        self.reading(expression.span, value)
        known, default = text_of(value), default_text(value)
        return (None if known is None else int(known)), (None if default is None else int(default))

    def case(self, node: Case, state: State, context: Context) -> list[State]:
        inner = self.redirected(node.redirects, state, context)
        subject = self.value(node.subject, state)
        self.reading(node.subject.span, subject)
        going: State | None = state
        done: list[State] = []
        fallen: list[State] = []
        passed: list[Condition] = []
        for arm in node.arms:
            span = Span(node.span.source, arm.patterns[0].span.start, arm.patterns[-1].span.end)
            taken = fallen
            if going is not None:
                yes, going = self.arm(arm.patterns, subject, node.subject, going)
                taken = [*fallen, yes] if yes is not None else fallen
            fallen = []
            if not taken:
                continue
            after = self.items(arm.body, self.join(taken), self.under(inner, Condition(span, None)))
            if arm.end == ";&":
                fallen = [one for one in after if not one.flow]
                done += [one for one in after if one.flow]
            else:
                done += after
            passed.append(Condition(span, False))
        done += fallen
        if going is not None:
            going.status = SUCCESS
            done.append(going)
        return self.join(done)

    def arm(self, words: Sequence[Word], subject: Value, word: Word, state: State) -> tuple[State | None, State | None]:
        found = [self.pattern(one, state) for one in words]
        text, default = text_of(subject), default_text(subject)
        held = either([conditions.matches(text, pattern) for pattern in found])
        shipped = either([conditions.matches(default, pattern) for pattern in found]) if default is not None else None
        key = ("case", plain_key(subject), tuple(found))
        held = state.decided.get(key, held) if held is None else held
        state.status = answered(*(held, shipped))
        yes, no = self.fork(state)
        if held is None and yes is not None and no is not None:
            yes.decided[key], no.decided[key] = True, False
            self.learn(word, found, yes)
        for one in (yes, no):
            if one is not None:
                one.status = SUCCESS
        return yes, no

    def learn(self, word: Word, found: Sequence[patterns.Parts | None], state: State) -> None:
        """In the arm of one plain pattern the variable is that text."""
        parameter = word.parts[0] if len(word.parts) == 1 else None
        pattern = found[0] if len(found) == 1 else None
        if not isinstance(parameter, Parameter) or parameter.operator or parameter.index or parameter.length or not pattern:
            return
        if any(not quoted and patterns.is_glob(text) for text, quoted in pattern):
            return
        self.set_known(parameter, "".join(text for text, _ in pattern), state)

    def set_known(self, parameter: Parameter, text: str, state: State) -> None:
        variable = state.variables.get(parameter.name)
        if parameter.indirect or not (parameter.name[0].isalpha() or parameter.name[0] == "_"):
            return
        if variable is None:
            if parameter.name not in state.unset:
                state.variables[parameter.name] = Variable((Known(text),), exported=True)
        elif variable.items is None:
            state.variables[parameter.name] = variable._replace(value=(computed(text, variable.value),))

    # -------------------------------------------------------------------------------------------- tests

    def reading(self, span: Span, pieces: Sequence[Piece]) -> None:
        found = places(pieces)
        if found:
            self.reads.append((span, found))

    def arithmetic_command(self, node: ArithmeticCommand, state: State, context: Context) -> list[State]:
        self.redirected(node.redirects, state, context)
        known, default = self.truth(node.expression, state)
        state.status = answered(*(known, default))
        self.settle(state, context)
        return [state]

    def conditional(self, node: Conditional, state: State, context: Context) -> list[State]:
        states = self.test(node.test, state)
        for one in states:
            self.settle(one, context)
        return states

    def test(self, test: Test, state: State) -> list[State]:
        if test.operator == "!":
            return [self.inverted(one) for one in self.test(test.tests[0], state)]
        if test.operator in ("&&", "||"):
            return self.test_list(test, state)
        held, shipped, key = self.simple_test(test, state)
        self.decide(held, shipped, key, state)
        if state.status.code is not None or test.operator not in ("=", "==") or not self.is_variable(test.words[0]):
            return [state]
        yes, no = self.fork(state)
        if yes is not None:
            yes.decided[key] = True
            self.learn(test.words[0], [self.pattern(test.words[1], yes)], yes)
        if no is not None:
            no.decided[key] = False
        return [one for one in (yes, no) if one is not None]

    def is_variable(self, word: Word) -> bool:
        return len(word.parts) == 1 and isinstance(word.parts[0], Parameter)

    def test_list(self, test: Test, state: State) -> list[State]:
        states, done = [state], list[State]()
        stop_on_success = test.operator == "||"
        for place, one in enumerate(test.tests):
            after: list[State] = []
            for going in states:
                after += self.test(one, going)
            if place == len(test.tests) - 1:
                return [*done, *after]
            states = []
            for end in after:
                yes, no = self.fork(end)
                stay, go = (yes, no) if stop_on_success else (no, yes)
                done += [stay] if stay is not None else []
                states += [go] if go is not None else []
            states = self.join(states)
        return done

    def decide(self, held: bool | None, shipped: bool | None, key: object, state: State) -> None:
        if held is None:
            held = state.decided.get(key)
        codes = [None if value is None else int(not value) for value in (held, shipped)]
        state.status = Status(codes[0], codes[1] if held is None else codes[0])

    def simple_test(self, test: Test, state: State) -> tuple[bool | None, bool | None, object]:
        values = [self.value(word, state) for word in test.words]
        for word, value in zip(test.words, values, strict=True):
            self.reading(word.span, value)
        texts, defaults = [text_of(value) for value in values], [default_text(value) for value in values]
        key = (test.operator, tuple(plain_key(value) for value in values))
        if len(values) == 1:
            if test.operator == "-v":
                return self.is_set(texts[0], state), False, key
            held, shipped = conditions.unary(test.operator, texts[0]), conditions.unary(test.operator, defaults[0])
            if held is None and test.operator in ("-z", "-n") and is_filled(values[0]):
                held = test.operator == "-n"
            return held, shipped, key
        if test.operator in ("=", "==", "!="):
            pattern = self.pattern(test.words[1], state)
            held, shipped = conditions.matches(texts[0], pattern), conditions.matches(defaults[0], pattern)
            if test.operator == "!=":
                return conditions.negated(held), conditions.negated(shipped), key
            return held, shipped, key
        if test.operator in ("-eq", "-ne", "-lt", "-le", "-gt", "-ge"):
            texts = [self.as_number(text, state) for text in texts]
            defaults = [self.as_number(text, state) for text in defaults]
        held = conditions.binary(texts[0], test.operator, texts[1])
        return held, conditions.binary(defaults[0], test.operator, defaults[1]), key

    def as_number(self, text: str | None, state: State) -> str | None:
        """``[[`` computes what stands beside ``-eq``."""
        if text is None:
            return None
        number = self.number((Known(text),), state, text_of)
        return None if number is None else str(number)

    def is_set(self, name: str | None, state: State) -> bool | None:
        if name is None or name not in state.variables:
            return False if name in state.unset else None
        return True

    def test_command(self, words: Sequence[Argument], state: State, parameter: Parameter | None) -> list[State]:
        """``[`` and ``test``."""
        if words[0].text == "[":
            words = words[:-1]
        operands = words[1:]
        for word in operands:
            self.reading(word.span, word.pieces)
        splits = any(word.may_split for word in operands)
        texts = [word.text for word in operands]
        held = None if splits else conditions.TestCommand(texts).result()
        if held is None and len(operands) == 2 and texts[0] in ("-z", "-n") and is_filled(operands[1].pieces):
            held = texts[0] == "-n"
        shipped = conditions.TestCommand([word.default for word in operands if not word.vanishes]).result()
        key = ("[", tuple(plain_key(word.pieces) for word in operands))
        self.decide(held, shipped, key, state)
        suspects = frozenset[int]().union(*[piece.commands for word in operands for piece in word.pieces
                                            if isinstance(piece, Unknown)])  # fmt: skip
        state.status = state.status._replace(suspects=suspects)
        if state.status.code is not None or parameter is None or len(texts) != 3 or texts[1] not in ("=", "=="):
            return [state]
        yes, no = self.fork(state)
        if yes is not None:
            yes.decided[key] = True
            if texts[2] is not None:
                self.set_known(parameter, texts[2], yes)
        if no is not None:
            no.decided[key] = False
        return [one for one in (yes, no) if one is not None]

    # -------------------------------------------------------------------------------------------- simple commands

    def define(self, node: Function, state: State, context: Context) -> list[State]:
        state.functions[node.name] = node
        state.status = SUCCESS
        return [state]

    def simple(self, node: Simple, state: State, context: Context) -> list[State]:
        self.context = context
        words: list[Argument] = []
        for word in node.words:
            if isinstance(word, Word):
                words += self.arguments([word], state)
            else:
                words.append(self.declared(word, node, state))
        self.context = context
        if not words:
            return self.assignments(node, state, context)
        redirections = self.redirections(node.redirects, state)
        stdin = self.stdin(node.redirects, state)
        stdin = context.stdin if stdin is None else stdin
        assignments = {one.name: self.assigned(one, state).value for one in node.assignments}
        inner = context._replace(stdin=stdin)
        if any(to_file(redirect) for redirect in node.redirects):
            inner = inner._replace(captured=False)
        states = self.command(node, tuple(words), assignments, redirections, state, inner)
        for one in states:
            self.settle(one, context)
        return states

    def declared(self, assignment: Assignment, node: Simple, state: State) -> Argument:
        """``NAME=value`` behind ``export`` and the like, as the one argument it is."""
        named = any(
            isinstance(word, Word) and "A" in (word.plain or "") and (word.plain or "")[0] == "-" for word in node.words
        )
        variable = self.prepared[assignment] = self.assigned(assignment, state, named)
        name = Known(assignment.name, assignment.name_span)
        value = variable.value if variable.items is None else ()
        return Argument((name, Known("="), *value), assignment.span, quoted=True)

    def assignments(self, node: Simple, state: State, context: Context) -> list[State]:
        before = len(self.records)
        for assignment in node.assignments:
            self.assign(assignment, state, context)
        self.redirections(node.redirects, state)
        ran = frozenset(record.number for record in self.records[before:] if record.place.substitution and record.last_stage)
        state.status = Status(None, 0, ran) if ran else SUCCESS
        self.settle(state, context)
        return [state]

    def assign(self, assignment: Assignment, state: State, context: Context) -> None:
        variable = self.prepared.pop(assignment, None)
        if variable is None:
            self.assigning = assignment.name
            variable = self.assigned(assignment, state)
            self.assigning = ""
        old = state.variables.get(assignment.name)
        if old is not None and old.readonly:
            return
        settled = not context.place.conditions and not context.place.function and not context.place.loops
        state.variables[assignment.name] = variable._replace(place=assignment.span, settled=settled)
        state.unset -= {assignment.name}

    def assigned(self, assignment: Assignment, state: State, named: bool = False) -> Variable:
        """The variable after an assignment."""
        old = state.variables.get(assignment.name)
        base = old or Variable()
        base = base._replace(named=True, items=base.items or {}) if named else base
        if assignment.elements is not None:
            return self.array(assignment, base, old, state)
        if assignment.index is not None:
            return self.indexed(assignment, base, state)
        value = self.value(assignment.value, state)
        if base.items is not None:
            items = dict(base.items)
            items["0"] = (*items.get("0", ()), *value) if assignment.append else value
            return base._replace(items=items)
        if assignment.append and "i" in base.attribute:
            number = self.number((*base.value, Known("+("), *value, Known(")")), state, text_of)
            return base._replace(value=() if number is None else literal(str(number)))
        if assignment.append:
            previous = base.value if old is not None else self.named_value(assignment.name, state) or ()
            if len(previous) + len(value) > MAX_PIECES:
                return base._replace(value=(Unknown(Kind.BRANCH, f"${assignment.name}"),))
            return base._replace(value=(*previous, *value))
        return base._replace(value=attributed(value, base.attribute))

    def array(self, assignment: Assignment, base: Variable, old: Variable | None, state: State) -> Variable:
        items: dict[str, Value] = {}
        if assignment.append and old is not None:
            items = dict(old.items) if old.items is not None else ({"0": old.value} if old.value else {})
        at = max((int(key) for key in items if key.isdigit()), default=-1) + 1 if not base.named else 0
        for element in assignment.elements or ():
            if element.index is not None:
                key = self.key(element.index, base, state)
                value = self.value(element.value, state)
                if key is None:
                    return base._replace(items={"0": (Unknown(Kind.BRANCH, assignment.name, "@"),)})
                items[key] = value
                at = int(key) + 1 if key.lstrip("-").isdigit() else at
                continue
            for argument in self.arguments([element.value], state):
                pieces = argument.pieces
                if argument.may_split and len(pieces) == 1 and isinstance(pieces[0], Unknown) and not is_many(pieces):
                    pieces = (pieces[0]._replace(name=f"@{pieces[0].name}"),)
                if any(isinstance(part, Parameter) for part in element.value.parts):
                    pieces = tuple(piece._replace(via=(*piece.via, argument.span)) for piece in pieces)
                items[str(at)] = pieces
                at += 1
            if len(items) > MAX_PIECES:
                return base._replace(items={"0": (Unknown(Kind.BRANCH, assignment.name, "@"),)})
        return base._replace(value=(), items=ordered(items, base.named))

    def indexed(self, assignment: Assignment, base: Variable, state: State) -> Variable:
        items = dict(base.items) if base.items is not None else ({"0": base.value} if base.value else {})
        key = self.key(assignment.index, base, state) if assignment.index is not None else None
        value = self.value(assignment.value, state)
        if key is None:
            return base._replace(items={"0": (Unknown(Kind.BRANCH, assignment.name, "@"),)})
        items[key] = (*items.get(key, ()), *value) if assignment.append else value
        return base._replace(value=(), items=ordered(items, base.named))

    # -------------------------------------------------------------------------------------------- redirections

    def redirections(self, redirects: Sequence[Redirect], state: State) -> tuple[Redirection, ...]:
        found: list[Redirection] = []
        for redirect in redirects:
            target = None
            if redirect.body is None:
                value = self.value(redirect.target, state)
                target = Argument(value, redirect.target.span, quoted=True)
            found.append(Redirection(redirect.operator, redirect.number, target, redirect.span))
        return tuple(found)

    def stdin(self, redirects: Sequence[Redirect], state: State) -> Value | None:
        for redirect in reversed(redirects):
            if redirect.number not in ("", "0"):
                continue
            if redirect.body is not None:
                span = redirect.body.span or redirect.span
                value = self.value(Word(redirect.body.parts, span), state)
                return tuple(without_tabs(piece) for piece in value) if redirect.body.strip_tabs else value
            if redirect.operator == "<<<":
                return (*self.value(redirect.target, state), Known("\n"))
            if redirect.operator in ("<", "<>"):
                return (Unknown(Kind.COMMAND, redirect.span.text, span=redirect.span),)
        return None

    # -------------------------------------------------------------------------------------------- running a command

    def command(
        self,
        node: Simple,
        words: tuple[Argument, ...],
        assignments: dict[str, Value],
        redirections: tuple[Redirection, ...],
        state: State,
        context: Context,
    ) -> list[State]:
        name = words[0].text
        if name is not None and name in state.functions and name not in context.calls[-MAX_CALLS:]:
            return self.call(state.functions[name], words, assignments, state, context)
        passed = wrappers.inner(words)
        argv = words[passed:]
        assignments |= {key: value_of(word) for key, word in wrappers.environment(words[:passed]).items()}
        number = self.record(node, words, argv, assignments, redirections, state, context)
        state.previous = state.status
        state.status = Status(None, 0, frozenset({number}))
        builtin = BUILTINS.get(argv[0].text or "") if argv else None
        if builtin is not None and all(word.text in ("builtin", "command") for word in words[:passed]):
            states = self.with_assignments(builtin, argv, assignments, node, state, context)
            for one in states:
                if one.status.code is None and not one.status.commands:
                    one.status = one.status._replace(commands=frozenset({number}))
            return states
        carried = self.carried(argv, assignments, number, state, context)
        if carried is None:
            self.unknown_output(node, state, context)
            carried = [state]
        if words[0].text == "exec" and len(words) > 1:
            for one in carried:
                one.flow = "exit"
        return carried

    def with_assignments(
        self,
        builtin: Builtin,
        argv: tuple[Argument, ...],
        assignments: Mapping[str, Value],
        node: Simple,
        state: State,
        context: Context,
    ) -> list[State]:
        """``IFS=, read …`` and ``X=1 source …``: the assignments hold while the builtin runs."""
        kept = {name: state.variables.get(name) for name in assignments}
        for name, value in assignments.items():
            state.variables[name] = Variable(value, exported=True)
        states = self.builtin(builtin, argv, node, state, context)
        for one in states:
            for name, variable in kept.items():
                one.variables.pop(name, None)
                if variable is not None:
                    one.variables[name] = variable
        return states

    def builtin(
        self, builtin: Builtin, argv: tuple[Argument, ...], node: Simple, state: State, context: Context
    ) -> list[State]:
        state.status = SUCCESS
        self.current = node
        try:
            return builtin(self, argv, state, context) or [state]
        except Unprintable:
            self.unknown_output(node, state, context)
            return [state]

    def unknown_output(self, node: Simple, state: State, context: Context) -> None:
        if context.captured:
            text = node.span.text
            words = text.split(None, 1)
            kind = Kind.TIME if words and words[0].rpartition("/")[2] == "date" else Kind.COMMAND
            state.output = (*state.output, Unknown(kind, f"$({text})", span=node.span))

    def record(
        self,
        node: Simple,
        words: tuple[Argument, ...],
        argv: tuple[Argument, ...],
        assignments: Mapping[str, Value],
        redirections: tuple[Redirection, ...],
        state: State,
        context: Context,
    ) -> int:
        exported = {name: one.value for name, one in state.variables.items() if one.exported and one.items is None}
        key = (
            id(node),
            tuple(word.pieces for word in words),
            tuple(assignments.items()),
            context.place,
            state.directory,
            tuple(exported.items()),
        )
        number = self.keys.get(key)
        if number is None:
            number = self.keys[key] = len(self.records)
            self.records.append(
                Record(
                    number,
                    words,
                    argv,
                    assignments,
                    exported,
                    redirections,
                    context.stdin,
                    context.piped_into,
                    state.directory,
                    context.place,
                    node.span,
                    [
                        mask
                        for mask, holds in (
                            ("background", context.place.background),
                            ("condition", context.condition),
                            ("alternative", context.alternative),
                            ("substitution", context.place.substitution),
                        )
                        if holds
                    ],
                    context.pipeline,
                    context.last_stage,
                    context.first_stage,
                )
            )
        record = self.records[number]
        record.as_shipped = record.as_shipped or state.shipped
        state.trace = Trace(number, (state.trace,))
        return number

    # -------------------------------------------------------------------------------------------- functions and scripts

    def call(
        self, function: Function, words: tuple[Argument, ...], assignments: dict[str, Value], state: State, context: Context
    ) -> list[State]:
        if len(context.calls) >= MAX_CALLS:
            state.status = Status(None, 0)
            return [state]
        outer, shifted = state.positional, state.shifted
        kept = {name: state.variables.get(name) for name in assignments}
        for name, value in assignments.items():
            state.variables[name] = Variable(value, exported=True)
        state.positional, state.shifted = self.positionals(words[1:], state), 0
        state.frames = (*state.frames, {})
        place = context.place._replace(function=function.name)
        inner = context._replace(place=place, calls=(*context.calls, function.name))
        states = self.node(function.body, state, inner)
        for one in states:
            if one.flow == "return":
                one.flow = ""
            for name, variable in {**kept, **one.frames[-1]}.items() if one.frames else ():
                if variable is None:
                    one.variables.pop(name, None)
                else:
                    one.variables[name] = variable
            one.frames = one.frames[:-1]
            one.positional, one.shifted = outer, shifted
        return self.join(states)

    def positionals(self, words: Sequence[Argument], state: State) -> tuple[Value, ...] | None:
        """The arguments of a function; None, when an unknown number of them is passed on."""
        if any(word.is_rest or is_many(word.pieces) for word in words):
            return None if len(words) == 1 else tuple(word.pieces for word in words if not word.is_rest)
        return tuple(word.pieces for word in words)

    def carried(
        self, argv: tuple[Argument, ...], assignments: Mapping[str, Value], number: int, state: State, context: Context
    ) -> list[State] | None:
        """``bash -c text`` and ``bash script``: runs what is carried, or gives None."""
        name = wrappers.base(argv[0]) if argv else None
        if name is None or len(context.calls) >= 6:
            return None
        place = context.place._replace(subshell=True, carrier=number, function="")
        inner = context._replace(place=place, calls=(*context.calls, "sh"), stdin=None)
        if name in ("bash", "sh", "zsh", "dash", "ash"):
            at, string, options = shell_options(argv)
            if at >= len(argv):
                return None
            if string:
                return self.in_child(state, assignments, inner, argv[at + 2 :], options,
                                     lambda child: self.text(argv[at].pieces, child, inner))  # fmt: skip
            return self.script(argv[at], argv[at + 1 :], assignments, options, state, inner)
        if name.endswith(".sh"):
            return self.script(argv[0], argv[1:], assignments, frozenset(), state, inner)
        return None

    def script(
        self,
        path: Argument,
        rest: Sequence[Argument],
        assignments: Mapping[str, Value],
        options: frozenset[str],
        state: State,
        context: Context,
    ) -> list[State] | None:
        source = self.neighbouring(path, state)
        if source is None:
            return None
        return self.in_child(state, assignments, context, rest, options,
                             lambda child: self.items(self.program(source).items, [child], context))  # fmt: skip

    def in_child(
        self,
        state: State,
        assignments: Mapping[str, Value],
        context: Context,
        rest: Sequence[Argument],
        options: frozenset[str],
        body: Callable[[State], list[State]],
    ) -> list[State]:
        """A new shell: it knows what is exported, and no options."""

        def run(child: State) -> list[State]:
            child.variables = {name: one for name, one in child.variables.items() if one.exported and one.items is None}
            child.variables |= {name: Variable(value, exported=True) for name, value in assignments.items()}
            child.functions, child.options, child.frames = {}, options, ()
            child.positional = self.positionals(rest, child)
            child.shifted = 0
            return body(child)

        return self.inside(state, context, run)

    def text(self, pieces: Value, state: State, context: Context) -> list[State]:
        """Runs a text that was put together."""
        starts, texts, at = list[int](), list[str](), 0
        for piece in pieces:
            starts.append(at)
            text = piece.text if isinstance(piece, Known) else HOLE
            texts.append(text)
            at += len(text)
        joined = "".join(texts)
        if len(joined) > 100_000:
            return [state]
        source = SourceText(self.source.path, joined)
        self.composites[source] = Composite(tuple(starts), pieces)
        return self.items(self.program(source).items, [state], context)

    def neighbouring(self, path: Argument, state: State) -> SourceText | None:
        if self.neighbour is None:
            return None
        name = script_name((*path.pieces,))
        if not name:
            return None
        if any(isinstance(piece, Known) for piece in state.directory) and not any(
            isinstance(piece, Unknown) and piece.kind is Kind.SCRIPT for piece in path.pieces
        ):
            folder = script_name((*state.directory, Known("/")))
            found = self.neighbour(folder + name) if folder else None
            if found is not None:
                return found
        return self.neighbour(name)

    # -------------------------------------------------------------------------------------------- what words need

    def split_value(self, value: Value, state: State) -> list[Value]:
        """A value cut at the separators, as ``read`` does it."""
        segments = [Segment(piece, False, True) for piece in value]
        return [argument.pieces for argument in self.fields(segments, self.source.whole, state)]

    def output_of(self, body: tuple[Item, ...], state: State, span: Span) -> Value:
        outer = self.context
        place = outer.place._replace(subshell=True, substitution=True)
        context = outer._replace(
            place=place,
            captured=True,
            guarded=True,
            piped_into=(),
            pipeline=None,
            last_stage=True,
            first_stage=True,
            condition=False,
        )
        output = state.output
        probe = state.copy()
        probe.output = ()
        child = probe.copy()
        child.options -= {"errexit"}
        ends = self.inside(child, context, lambda one: self.items(body, [one], context))
        self.context = outer
        results = [strip_newlines(end.output) for end in ends]
        shipped = [strip_newlines(end.output) for end in ends if end.shipped]
        state.trace = traced(ends)
        state.output = output
        if not results:
            return ()
        if all(result == results[0] for result in results):
            return results[0]
        default = shipped[0] if len(shipped) == 1 and state.shipped else None
        return (Unknown(Kind.COMMAND, span.text, "", default, span),)

    def process_substitution(self, part: ProcessSubstitution, state: State) -> None:
        outer = self.context
        place = outer.place._replace(subshell=True, background=True)
        context = outer._replace(place=place, captured=False, guarded=True, piped_into=(), pipeline=None)
        ends = self.inside(state.copy(), context, lambda one: self.items(part.body, [one], context))
        self.context = outer
        state.trace = traced(ends)

    def default_defeated(self, name: str, parameter: Parameter, variable: Variable, state: State) -> None:
        """``X=-1`` and then ``X=${X:-50}``: the 50 never counts."""
        if not variable.settled or variable.place is None or text_of(variable.value) is None:
            return
        if name != self.assigning:
            return
        notice = Notice(Loss.DEFEATED_DEFAULT, variable.place, (parameter.operands[0].span,), name)
        if notice not in self.notices:
            self.notices.append(notice)


Builtin = Callable[[Interpreter, Sequence[Argument], State, Context], "list[State] | None"]


# ------------------------------------------------------------------------------------------------ small questions


def answered(held: int | None, shipped: int | None) -> Status:
    """The status of a question: 0 for yes."""
    return Status(None if held is None else int(not held), None if shipped is None else int(not shipped))


def items_span(items: Sequence[Item], otherwise: Span) -> Span:
    if not items:
        return otherwise
    first, last = items[0].node.span, items[-1].node.span
    return Span(first.source, first.start, last.end)


def ordered(items: dict[str, Value], named: bool) -> dict[str, Value]:
    """The elements of an array by their numbers."""
    if named or not all(key.isdigit() for key in items):
        return items
    return {key: items[key] for key in sorted(items, key=int)}


def traced(ends: Sequence[State]) -> Trace:
    """The ways so far as one, the one taken as shipped first."""
    found: dict[int, Trace] = {}
    for end in sorted(ends, key=lambda end: not end.shipped):
        found[id(end.trace)] = end.trace
    return next(iter(found.values())) if len(found) == 1 else Trace(None, tuple(found.values()))


def to_file(redirect: Redirect) -> bool:
    """Whether the output goes elsewhere."""
    if redirect.operator in (">&",):
        return redirect.number in ("", "1")
    return redirect.operator in (">", ">>", "&>", "&>>", ">|") and redirect.number in ("", "1")


def failing_anywhere(statuses: Sequence[Status]) -> Status:
    """The status of a pipeline under ``pipefail``."""
    commands = frozenset[int]().union(*[status.commands for status in statuses])
    codes = [status.code for status in statuses]
    known = next((code for code in reversed(codes) if code), None)
    code = known if known is not None else (None if None in codes else 0)
    default = next((status.default for status in reversed(statuses) if status.default), 0)
    return Status(code, default, commands)


def either(results: Sequence[bool | None]) -> bool | None:
    if any(results):
        return True
    return None if None in results else False


def plain_key(value: Value) -> object:
    """A value such that the same question about it has the same answer wherever it is asked."""
    found: list[object] = []
    for piece in value:
        if isinstance(piece, Known):
            found.append(piece.text)
        elif piece.kind in (Kind.ENVIRONMENT, Kind.POSITIONAL):
            found.append((piece.kind, piece.name, plain_key(piece.default or ())))
        else:
            found.append(piece)
    return tuple(found)


def is_filled(value: Value) -> bool:
    """Whether an unknown text cannot be empty."""
    return present(value, True) is True


def without_tabs(piece: Piece) -> Piece:
    import re

    if not isinstance(piece, Known):
        return piece
    text = re.sub(r"(?m)^\t+", "", piece.text)
    return piece if text == piece.text else computed(text, (piece,))


def attributed(value: Value, attribute: str) -> Value:
    text = text_of(value)
    if text is None or not attribute:
        return value
    if "u" in attribute:
        return (computed(text.upper(), value),)
    if "l" in attribute:
        return (computed(text.lower(), value),)
    return value


def value_of(word: Argument) -> Value:
    """What stands behind the ``=`` of a word."""
    found: list[Piece] = []
    seen = False
    for piece in word.pieces:
        if seen:
            found.append(piece)
        elif isinstance(piece, Known) and "=" in piece.text:
            seen = True
            at = piece.text.index("=") + 1
            if at < len(piece.text):
                found.append(piece.cut(at, len(piece.text)))
    return tuple(found)


def shell_options(argv: Sequence[Argument]) -> tuple[int, bool, frozenset[str]]:
    """Where the script or the text of ``bash`` stands, whether it is a text, and the options switched on."""
    at, string, options = 1, False, set[str]()
    while at < len(argv):
        text = argv[at].text
        if text is None or not text.startswith(("-", "+")) or text == "-":
            break
        if text == "--":
            at += 1
            break
        if text.startswith("--"):
            at += 2 if text in ("--rcfile", "--init-file") else 1
            continue
        string = string or ("c" in text and text[0] == "-")
        if "e" in text:
            options.add("errexit")
        at += 1
        if text.endswith("o") and at < len(argv):
            options.add(argv[at].text or "")
            at += 1
    return at, string, frozenset(options)


def script_name(pieces: Value) -> str:
    """A path as the neighbour's reader takes it: relative to this script's folder where it says so; "" when unknown."""
    texts: list[str] = []
    for piece in pieces:
        if isinstance(piece, Known):
            texts.append(piece.text)
        elif (piece.kind is Kind.SCRIPT and piece.name == "folder" and not texts) or (piece.name == "PWD" and not texts):
            texts.append(".")
        else:
            text = default_text((piece,))
            if text is None:
                return ""
            texts.append(text)
    return "".join(texts)


RUN: dict[type, Callable[[Interpreter, Node, State, Context], list[State]]] = {
    Simple: Interpreter.simple,  # type: ignore[dict-item]
    Group: Interpreter.group,  # type: ignore[dict-item]
    If: Interpreter.if_,  # type: ignore[dict-item]
    For: Interpreter.for_,  # type: ignore[dict-item]
    ArithmeticFor: Interpreter.arithmetic_for,  # type: ignore[dict-item]
    While: Interpreter.while_,  # type: ignore[dict-item]
    Case: Interpreter.case,  # type: ignore[dict-item]
    Function: Interpreter.define,  # type: ignore[dict-item]
    ArithmeticCommand: Interpreter.arithmetic_command,  # type: ignore[dict-item]
    Conditional: Interpreter.conditional,  # type: ignore[dict-item]
    Pipeline: Interpreter.pipeline,  # type: ignore[dict-item]
    AndOr: Interpreter.and_or,  # type: ignore[dict-item]
}
__all__ = ["Interpreter", "Literal"]
