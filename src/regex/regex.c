#include "regex/regex_private.h"

enum { SCRATCH_BYTES_MAX = 8 << 20 };

/* The flags of (?ims). They end with their group. */
enum regex_flag { FLAG_FOLD = 1, FLAG_LINES = 2, FLAG_DOT_ALL = 4 };

struct regex_parser {
    struct arena *arena;   /* for the program */
    struct arena *scratch; /* for temporary memory */
    size_t *left;          /* steps that may still be added */
    struct slice pattern;
    size_t at;
    struct regex_step *steps;
    size_t count, room;
    size_t names_end; /* there is no ":]" from here on */
    unsigned flags;
    unsigned depth;
    struct error *error;
};

static enum status fail(struct regex_parser *p, const char *what, size_t from, size_t to)
{
    struct slice shown = slice_sub(p->pattern, from, size_min(to, p->pattern.len) - from);
    return error_set(p->error, ST_INVALID, "error parsing regexp: %s: `%.*s`", what,
                     (int)size_min(shown.len, 128), (const char *)shown.ptr);
}

static enum status unsupported(struct regex_parser *p)
{
    return error_set(p->error, ST_UNIMPLEMENTED, "classes of Unicode properties are not supported");
}

/* -- The program -- */

static enum status spend(struct regex_parser *p, size_t steps)
{
    if (steps > *p->left)
        return error_set(p->error, ST_LIMIT, "all patterns together are too large");
    *p->left -= steps;
    return ST_OK;
}

static enum status reserve(struct regex_parser *p, size_t more)
{
    if (p->count + more > REGEX_INSTRUCTIONS_MAX)
        return error_set(p->error, ST_LIMIT, "error parsing regexp: expression too large");
    TRY(spend(p, more));
    if (p->count + more <= p->room)
        return ST_OK;
    size_t room = size_max(2 * p->room, p->count + more);
    struct regex_step *steps = arena_alloc(p->scratch, size_max(room, 16) * sizeof(*steps));
    if (!steps)
        return ST_NOMEM;
    if (p->count)
        memcpy(steps, p->steps, p->count * sizeof(*steps));
    p->steps = steps;
    p->room = size_max(room, 16);
    return ST_OK;
}

static enum status emit(struct regex_parser *p, struct regex_step step)
{
    TRY(reserve(p, 1));
    p->steps[p->count++] = step;
    return ST_OK;
}

/* Inserts a step before a block of steps, which moves up as a whole. */
static enum status insert(struct regex_parser *p, size_t at, struct regex_step step)
{
    TRY(reserve(p, 1));
    TRY(spend(p, (p->count - at) / 16));
    memmove(p->steps + at + 1, p->steps + at, (p->count - at) * sizeof(step));
    p->count++;
    p->steps[at] = step;
    return ST_OK;
}

static enum status emit_rune(struct regex_parser *p, uint32_t rune)
{
    return emit(p,
                (struct regex_step){.op = REGEX_RUNE, .rune = rune, .fold = p->flags & FLAG_FOLD});
}

static enum status emit_place(struct regex_parser *p, enum regex_place place)
{
    return emit(p, (struct regex_step){.op = REGEX_AT, .rune = place});
}

/* -- Characters -- */

static bool more(const struct regex_parser *p)
{
    return p->at < p->pattern.len;
}

static uint8_t peek(const struct regex_parser *p)
{
    return more(p) ? p->pattern.ptr[p->at] : 0;
}

static bool accept(struct regex_parser *p, char c)
{
    if (!more(p) || peek(p) != (uint8_t)c)
        return false;
    p->at++;
    return true;
}

static uint32_t take_rune(struct regex_parser *p)
{
    size_t len;
    uint32_t rune = regex_rune(p->pattern, p->at, &len);
    p->at += len;
    return rune;
}

/* -- Classes -- */

enum { RANGES_MAX = 4096 };

struct class
{
    struct regex_range *ranges;
    size_t count, room;
    bool negated;
};

static enum status class_add(struct regex_parser *p, struct class *class, uint32_t low,
                             uint32_t high)
{
    if (class->count == RANGES_MAX)
        return error_set(p->error, ST_LIMIT, "error parsing regexp: expression too large");
    TRY(spend(p, 1));
    if (class->count == class->room) {
        size_t room = size_max(2 * class->room, 8);
        struct regex_range *ranges = arena_alloc(p->scratch, room * sizeof(*ranges));
        if (!ranges)
            return ST_NOMEM;
        if (class->count)
            memcpy(ranges, class->ranges, class->count * sizeof(*ranges));
        class->ranges = ranges;
        class->room = room;
    }
    class->ranges[class->count++] = (struct regex_range){low, high};
    return ST_OK;
}

struct named_class {
    const char *name;
    const char *ranges; /* pairs of ASCII characters, in order */
};

/* Adds these ranges or, if negated, everything between them. */
static enum status class_add_ranges(struct regex_parser *p, struct class *class, const char *pairs,
                                    bool negated)
{
    uint32_t from = 0;
    for (; *pairs; pairs += 2) {
        uint32_t low = (uint8_t)pairs[0], high = (uint8_t)pairs[1];
        if (!negated)
            TRY(class_add(p, class, low, high));
        else if (low > from)
            TRY(class_add(p, class, from, low - 1));
        from = high + 1;
    }
    return negated ? class_add(p, class, from, 0x10ffff) : ST_OK;
}

static const char *perl_class(uint8_t letter)
{
    switch (letter | 0x20) {
    case 'd':
        return "09";
    case 'w':
        return "09AZ__az";
    default:
        return "\t\n\f\r  ";
    }
}

static bool is_perl(uint8_t c)
{
    return c && strchr("dDwWsS", c);
}

static const struct named_class posix_classes[] = {
    {"alnum", "09AZaz"},  {"alpha", "AZaz"},     {"ascii", "\1\177"}, {"blank", "\t\t  "},
    {"cntrl", "\1\37"},   {"digit", "09"},       {"graph", "!~"},     {"lower", "az"},
    {"print", " ~"},      {"punct", "!/:@[`{~"}, {"space", "\t\r  "}, {"upper", "AZ"},
    {"word", "09AZ__az"}, {"xdigit", "09AFaf"},
};

/*
 * Reads [:name:] at the current position. ST_NOT_FOUND: it is not a class, but literal characters.
 */
static enum status class_add_posix(struct regex_parser *p, struct class *class)
{
    size_t from = p->at + 2, end = from;
    if (from >= p->names_end)
        return ST_NOT_FOUND;
    while (memcmp(p->pattern.ptr + end, ":]", 2) != 0)
        end++;
    bool negated = p->pattern.ptr[from] == '^';
    struct slice name = slice_sub(p->pattern, from + negated, end - from - negated);
    for (size_t i = 0; i < COUNT_OF(posix_classes); i++) {
        if (!slice_equal(name, slice_from_text(posix_classes[i].name)))
            continue;
        p->at = end + 2;
        return class_add_ranges(p, class, posix_classes[i].ranges, negated);
    }
    return fail(p, "invalid character class range", p->at, end + 2);
}

/* -- Escapes, after the backslash -- */

static int hex(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static enum status take_hex(struct regex_parser *p, size_t from, uint32_t *ret_rune)
{
    uint32_t rune = 0;
    bool braces = accept(p, '{');
    for (size_t digits = 0; braces ? peek(p) != '}' : digits < 2; digits++) {
        int digit = hex(peek(p));
        if (digit < 0 || !more(p) || digits > 8)
            return fail(p, "invalid escape sequence", from, p->at);
        rune = rune << 4 | (uint32_t)digit;
        p->at++;
    }
    if ((braces && !accept(p, '}')) || rune > 0x10ffff)
        return fail(p, "invalid escape sequence", from, p->at);
    *ret_rune = rune;
    return ST_OK;
}

/* Reads an escape for one character. */
static enum status take_escape(struct regex_parser *p, size_t from, uint32_t *ret_rune)
{
    static const char letters[] = "afnrtv", meanings[] = "\a\f\n\r\t\v";
    if (!more(p))
        return fail(p, "trailing backslash at end of expression", p->at, p->at);
    uint8_t c = peek(p);
    const char *letter = c < 0x80 ? strchr(letters, c) : NULL;
    if (c == 'p' || c == 'P')
        return unsupported(p);
    p->at++;
    if (c == 'x')
        return take_hex(p, from, ret_rune);
    *ret_rune = letter ? (uint32_t)meanings[letter - letters] : c;
    if (c >= '0' && c <= '7') {
        uint32_t rune = (uint32_t)(c - '0');
        bool octal = c == '0' || (peek(p) >= '0' && peek(p) <= '7');
        if (!octal)
            return fail(p, "invalid escape sequence", from, p->at);
        for (int i = 0; i < 2 && peek(p) >= '0' && peek(p) <= '7'; i++, p->at++)
            rune = rune << 3 | (uint32_t)(peek(p) - '0');
        *ret_rune = rune;
        return ST_OK;
    }
    bool punctuation = c < 0x80 && !regex_is_word(c);
    if (letter || punctuation || c == '_')
        return ST_OK;
    return fail(p, "invalid escape sequence", from, p->at);
}

static enum status class_bound(struct regex_parser *p, uint32_t *ret_rune)
{
    size_t from = p->at;
    if (accept(p, '\\'))
        return take_escape(p, from, ret_rune);
    *ret_rune = take_rune(p);
    return ST_OK;
}

static enum status class_item(struct regex_parser *p, struct class *class)
{
    size_t from = p->at;
    uint32_t low, high;
    struct slice rest = slice_sub(p->pattern, p->at, p->pattern.len - p->at);
    if (slice_has_prefix(rest, SLICE_LITERAL("[:"))) {
        enum status status = class_add_posix(p, class);
        if (status != ST_NOT_FOUND)
            return status;
    }
    if (rest.len > 1 && rest.ptr[0] == '\\' && is_perl(rest.ptr[1])) {
        p->at += 2;
        return class_add_ranges(p, class, perl_class(rest.ptr[1]), !(rest.ptr[1] & 0x20));
    }
    TRY(class_bound(p, &low));
    high = low;
    bool range = peek(p) == '-' && p->at + 1 < p->pattern.len && p->pattern.ptr[p->at + 1] != ']';
    if (range) {
        p->at++;
        TRY(class_bound(p, &high));
    }
    if (high < low)
        return fail(p, "invalid character class range", from, p->at);
    return class_add(p, class, low, high);
}

static enum status emit_class(struct regex_parser *p, const struct class *class)
{
    struct slice ranges;
    TRY(arena_dup(p->arena, slice_of(class->ranges, class->count * sizeof(*class->ranges)),
                  &ranges));
    return emit(p, (struct regex_step){.op = REGEX_CLASS,
                                       .fold = p->flags & FLAG_FOLD,
                                       .negated = class->negated,
                                       .rune = (uint32_t) class->count,
                                       .ranges = (const void *)ranges.ptr});
}

/* Called after the bracket. */
static enum status parse_class(struct regex_parser *p)
{
    size_t from = p->at - 1;
    struct class class = {0};
    class.negated = accept(p, '^');
    bool first = true;
    while (first || peek(p) != ']') {
        if (!more(p))
            return fail(p, "missing closing ]", from, p->pattern.len);
        first = false;
        TRY(class_item(p, &class));
    }
    p->at++;
    return emit_class(p, &class);
}

/* -- Groups and single characters -- */

static enum status parse_alternatives(struct regex_parser *p);

/* Any character, except a newline unless FLAG_DOT_ALL is set. */
static enum status emit_any(struct regex_parser *p)
{
    struct class class = {.negated = true};
    if (!(p->flags & FLAG_DOT_ALL))
        TRY(class_add(p, &class, '\n', '\n'));
    return emit_class(p, &class);
}

static enum status parse_escape(struct regex_parser *p)
{
    size_t from = p->at - 1;
    uint8_t c = peek(p);
    uint32_t rune;
    struct class class = {0};
    if (is_perl(c)) {
        p->at++;
        TRY(class_add_ranges(p, &class, perl_class(c), !(c & 0x20)));
        return emit_class(p, &class);
    }
    static const char places[] = "AzbB";
    static const enum regex_place meanings[] = {REGEX_TEXT_BEGIN, REGEX_TEXT_END, REGEX_WORD_EDGE,
                                                REGEX_NO_WORD_EDGE};
    const char *place = c && c < 0x80 ? strchr(places, c) : NULL;
    if (place) {
        p->at++;
        return emit_place(p, meanings[place - places]);
    }
    if (c == 'Q') {
        p->at++;
        while (more(p) && !slice_has_prefix(slice_sub(p->pattern, p->at, p->pattern.len - p->at),
                                            SLICE_LITERAL("\\E")))
            TRY(emit_rune(p, take_rune(p)));
        p->at = size_min(p->at + 2, p->pattern.len);
        return ST_OK;
    }
    TRY(take_escape(p, from, &rune));
    return emit_rune(p, rune);
}

/* (?P<name> and (?<name>, called after the angle bracket. */
static enum status skip_name(struct regex_parser *p, size_t from)
{
    size_t start = p->at;
    while (regex_is_word(peek(p)))
        p->at++;
    if (p->at == start || !accept(p, '>'))
        return fail(p, "invalid named capture", from, p->at + 1);
    return ST_OK;
}

/* Called after "(?". Flags without a group apply to the end of the enclosing group. */
static enum status parse_flags(struct regex_parser *p, size_t from, bool *ret_group)
{
    unsigned flags = p->flags;
    bool off = false;
    *ret_group = true;
    if (accept(p, '<') || (peek(p) == 'P' && p->at + 1 < p->pattern.len &&
                           p->pattern.ptr[p->at + 1] == '<' && (p->at += 2)))
        return skip_name(p, from);
    while (more(p) && peek(p) != ':' && peek(p) != ')') {
        uint8_t c = peek(p);
        unsigned flag = c == 'i' ? FLAG_FOLD : c == 'm' ? FLAG_LINES : c == 's' ? FLAG_DOT_ALL : 0;
        p->at++;
        if (c == '-' && !off)
            off = true;
        else if (!flag && c != 'U')
            return fail(p, "invalid or unsupported Perl syntax", from, p->at);
        flags = off ? flags & ~flag : flags | flag;
    }
    if (!more(p))
        return fail(p, "missing closing )", 0, p->pattern.len);
    p->flags = flags;
    *ret_group = peek(p) == ':';
    p->at += *ret_group;
    return ST_OK;
}

/* Called after the parenthesis. */
static enum status parse_group(struct regex_parser *p)
{
    size_t from = p->at - 1;
    unsigned flags = p->flags;
    bool group = true;
    if (++p->depth > REGEX_DEPTH_MAX)
        return error_set(p->error, ST_LIMIT, "error parsing regexp: expression nests too deeply");
    if (accept(p, '?'))
        TRY(parse_flags(p, from, &group));
    if (group)
        TRY(parse_alternatives(p));
    if (!accept(p, ')'))
        return fail(p, "missing closing )", 0, p->pattern.len);
    if (group)
        p->flags = flags;
    p->depth--;
    return ST_OK;
}

static enum status parse_atom(struct regex_parser *p)
{
    size_t from = p->at;
    uint32_t rune = take_rune(p);
    switch (rune) {
    case '(':
        return parse_group(p);
    case '[':
        return parse_class(p);
    case '\\':
        return parse_escape(p);
    case '.':
        return emit_any(p);
    case '^':
        return emit_place(p, p->flags & FLAG_LINES ? REGEX_LINE_BEGIN : REGEX_TEXT_BEGIN);
    case '$':
        return emit_place(p, p->flags & FLAG_LINES ? REGEX_LINE_END : REGEX_TEXT_END);
    case '*':
    case '+':
    case '?':
        return fail(p, "missing argument to repetition operator", from, p->at);
    default:
        return emit_rune(p, rune);
    }
}

/* -- Repeats -- */

static bool take_number(struct regex_parser *p, size_t *at, int *ret_number)
{
    size_t from = *at;
    int number = 0;
    while (*at < p->pattern.len && p->pattern.ptr[*at] >= '0' && p->pattern.ptr[*at] <= '9') {
        number = number > REGEX_REPEAT_MAX ? number : number * 10 + p->pattern.ptr[*at] - '0';
        ++*at;
    }
    *ret_number = number;
    return *at > from;
}

/* {2}, {2,}, {2,5}; any other brace is literal. max -1: unlimited. */
static bool take_braces(struct regex_parser *p, int *ret_min, int *ret_max)
{
    size_t at = p->at + 1;
    if (!take_number(p, &at, ret_min))
        return false;
    *ret_max = *ret_min;
    if (at < p->pattern.len && p->pattern.ptr[at] == ',') {
        at++;
        if (!take_number(p, &at, ret_max))
            *ret_max = -1;
    }
    if (at >= p->pattern.len || p->pattern.ptr[at] != '}')
        return false;
    p->at = at + 1;
    return true;
}

static bool take_repeat(struct regex_parser *p, int *ret_min, int *ret_max)
{
    switch (peek(p)) {
    case '*':
        *ret_min = 0, *ret_max = -1;
        break;
    case '+':
        *ret_min = 1, *ret_max = -1;
        break;
    case '?':
        *ret_min = 0, *ret_max = 1;
        break;
    case '{':
        return take_braces(p, ret_min, ret_max);
    default:
        return false;
    }
    p->at++;
    return true;
}

static enum status copy_atom(struct regex_parser *p, size_t from, size_t len)
{
    TRY(reserve(p, len));
    memcpy(p->steps + p->count, p->steps + from, len * sizeof(*p->steps));
    p->count += len;
    return ST_OK;
}

/* Makes the block at `from` optional. */
static enum status make_optional(struct regex_parser *p, size_t from)
{
    int32_t over = (int32_t)(p->count - from) + 1;
    return insert(p, from, (struct regex_step){.op = REGEX_SPLIT, .x = 1, .y = over});
}

/* Repeats the block at `from` one or more times. */
static enum status make_loop(struct regex_parser *p, size_t from)
{
    int32_t back = -(int32_t)(p->count - from);
    return emit(p, (struct regex_step){.op = REGEX_SPLIT, .x = back, .y = 1});
}

static enum status expand_repeat(struct regex_parser *p, size_t from, int min, int max)
{
    size_t len = p->count - from;
    if (max == 0) {
        p->count = from;
        return ST_OK;
    }
    for (int i = 1; i < min; i++)
        TRY(copy_atom(p, from, len));
    size_t last = p->count - len;
    if (max < 0) {
        TRY(make_loop(p, last));
        return min ? ST_OK : make_optional(p, from);
    }
    for (int i = min ? min : 1; i < max; i++) {
        TRY(copy_atom(p, from, len));
        TRY(make_optional(p, p->count - len));
    }
    if (min)
        return ST_OK;
    return insert(p, from, (struct regex_step){.op = REGEX_SPLIT, .x = 1, .y = (int32_t)len + 1});
}

static enum status parse_repeats(struct regex_parser *p, size_t from)
{
    int min, max;
    size_t start = p->at;
    if (!take_repeat(p, &min, &max))
        return ST_OK;
    if (min > REGEX_REPEAT_MAX || max > REGEX_REPEAT_MAX || (max >= 0 && max < min))
        return fail(p, "invalid repeat count", start, p->at);
    (void)!accept(p, '?'); /* non-greedy, which makes no difference to whether there is a match */
    TRY(expand_repeat(p, from, min, max));
    if (take_repeat(p, &min, &max))
        return fail(p, "invalid nested repetition operator", start, p->at);
    return ST_OK;
}

static enum status parse_sequence(struct regex_parser *p)
{
    while (more(p) && peek(p) != '|' && peek(p) != ')') {
        size_t from = p->count;
        TRY(parse_atom(p));
        TRY(parse_repeats(p, from));
    }
    return ST_OK;
}

/* A split step before each alternative leads to it and to the next one. */
static enum status parse_alternatives(struct regex_parser *p)
{
    size_t last_exit = 0;
    for (;;) {
        size_t split = p->count;
        TRY(emit(p, (struct regex_step){.op = REGEX_JUMP, .x = 1}));
        TRY(parse_sequence(p));
        if (!accept(p, '|'))
            break;
        p->steps[split].op = REGEX_SPLIT;
        p->steps[split].y = (int32_t)(p->count - split) + 1;
        /* Exits form a list through their targets until the real target is known. */
        size_t exit = p->count;
        TRY(emit(p, (struct regex_step){.op = REGEX_JUMP, .rune = (uint32_t)last_exit}));
        last_exit = exit + 1;
    }
    while (last_exit) {
        struct regex_step *step = &p->steps[last_exit - 1];
        step->x = (int32_t)(p->count - (last_exit - 1));
        last_exit = step->rune;
        step->rune = 0;
    }
    return ST_OK;
}

static enum status parse(struct regex_parser *p, const struct regex **ret_regex)
{
    TRY(parse_alternatives(p));
    if (more(p))
        return fail(p, "unexpected )", 0, p->pattern.len);
    TRY(emit(p, (struct regex_step){.op = REGEX_FOUND}));
    struct regex *regex = arena_alloc(p->arena, sizeof(*regex));
    struct regex_step *steps = arena_alloc(p->arena, p->count * sizeof(*steps));
    if (!regex || !steps)
        return ST_NOMEM;
    memcpy(steps, p->steps, p->count * sizeof(*steps));
    *regex = (struct regex){.steps = steps, .count = (uint32_t)p->count};
    *ret_regex = regex;
    return ST_OK;
}

static size_t find_names_end(struct slice pattern)
{
    size_t end = pattern.len ? pattern.len - 1 : 0;
    while (end && memcmp(pattern.ptr + end - 1, ":]", 2) != 0)
        end--;
    return end;
}

enum status regex_compile_within(struct arena *arena, struct slice pattern, size_t *steps,
                                 const struct regex **ret_regex, struct error *error)
{
    _Alignas(ARENA_ALIGN) uint8_t first[4096];
    struct arena scratch;
    struct regex_parser p = {
        .arena = arena, .scratch = &scratch, .pattern = pattern, .error = error};
    p.left = steps;
    if (pattern.len > REGEX_BYTES_MAX)
        return error_set(error, ST_LIMIT, "error parsing regexp: expression too large");
    TRY(spend(&p, pattern.len / 16));
    p.names_end = find_names_end(pattern);
    arena_init(&scratch, first, sizeof(first), SCRATCH_BYTES_MAX);
    enum status status = parse(&p, ret_regex);
    arena_fini(&scratch);
    return status;
}

enum status regex_compile(struct arena *arena, struct slice pattern, const struct regex **ret_regex,
                          struct error *error)
{
    size_t steps = SIZE_MAX;
    return regex_compile_within(arena, pattern, &steps, ret_regex, error);
}
