#include "regex/parse_private.h"

#include "codec/utf8.h"

enum { SHOWN_BYTES_MAX = 900 };

/* A list of nodes. */
struct nodes {
    struct regex_node *first, *last;
    uint32_t count;
};

/* A group that is not closed yet; the outermost one is the pattern. */
struct open_group {
    struct open_group *outer;
    unsigned flags; /* to which its end returns */
    bool captures;
    struct nodes items;        /* parts of the sequence that is being read */
    struct nodes alternatives; /* those that have been read */
};

struct builder {
    struct regex_reader reader;
    struct open_group *group;
    size_t repeat_from; /* where the operator is that ended the last item, or NO_REPEAT */
};

static const size_t NO_REPEAT = SIZE_MAX;

/* -- Errors -- */

enum status regex_fail(struct regex_reader *r, const char *what, size_t from, size_t to)
{
    struct slice shown = slice_sub(r->pattern, from, size_min(to - from, SHOWN_BYTES_MAX));
    return error_set(r->parser->error, ST_INVALID, "error parsing regexp: %s: `%.*s`", what,
                     SLICE_ARGS(shown));
}

static enum status fail_whole(struct regex_reader *r, const char *what)
{
    return regex_fail(r, what, 0, r->pattern.len);
}

enum status regex_too_large(struct regex_parser *parser)
{
    struct slice shown =
        slice_sub(parser->pattern, 0, size_min(parser->pattern.len, SHOWN_BYTES_MAX));
    return error_set(parser->error, ST_LIMIT, "error parsing regexp: expression too large: `%.*s`",
                     SLICE_ARGS(shown));
}

enum status regex_spend(struct regex_parser *parser, size_t steps)
{
    if (steps > *parser->steps_left)
        return error_set(parser->error, ST_LIMIT, "all patterns together are too large");
    *parser->steps_left -= steps;
    return ST_OK;
}

/* -- Characters -- */

enum status regex_check_utf8(struct regex_reader *r, size_t from, size_t to)
{
    while (from < to) {
        size_t len = utf8_char_len(slice_sub(r->pattern, from, to - from));
        if (!len)
            return regex_fail(r, "invalid UTF-8", from, to);
        from += len;
    }
    return ST_OK;
}

enum status regex_take_rune(struct regex_reader *r, uint32_t *ret_rune)
{
    size_t len;
    *ret_rune = 0xfffd;
    if (!regex_more(r))
        return ST_OK;
    if (!utf8_char_len(slice_sub(r->pattern, r->at, r->pattern.len - r->at)))
        return regex_fail(r, "invalid UTF-8", r->at, r->pattern.len);
    *ret_rune = regex_rune(r->pattern, r->at, &len);
    r->at += len;
    return ST_OK;
}

static int hex_digit(uint32_t c)
{
    if (c >= '0' && c <= '9')
        return (int)c - '0';
    if (c >= 'a' && c <= 'f')
        return (int)c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? (int)c - 'A' + 10 : -1;
}

static bool is_octal(uint8_t c)
{
    return c >= '0' && c <= '7';
}

/* \x41 or \x{1f600}, behind the x. */
static enum status take_hex(struct regex_reader *r, size_t from, uint32_t *ret_rune)
{
    uint32_t rune = 0, c;
    int high, low;
    TRY(regex_take_rune(r, &c));
    if (c != '{') {
        high = hex_digit(c);
        if (r->at - from == 2)
            return regex_fail(r, "invalid escape sequence", from, r->at);
        TRY(regex_take_rune(r, &c));
        low = hex_digit(c);
        *ret_rune = (uint32_t)(high * 16 + low);
        return high < 0 || low < 0 ? regex_fail(r, "invalid escape sequence", from, r->at) : ST_OK;
    }
    for (size_t digits = 0; regex_more(r); digits++) {
        TRY(regex_take_rune(r, &c));
        int digit = hex_digit(c);
        *ret_rune = rune;
        if (c == '}' && digits)
            return ST_OK;
        rune = rune * 16 + (uint32_t)digit;
        if (digit < 0 || rune > REGEX_RUNE_MAX)
            break;
    }
    return regex_fail(r, "invalid escape sequence", from, r->at);
}

enum status regex_take_escape(struct regex_reader *r, uint32_t *ret_rune)
{
    static const char letters[] = "afnrtv", meanings[] = "\a\f\n\r\t\v";
    size_t from = r->at++;
    uint32_t c;
    if (!regex_more(r))
        return regex_fail(r, "trailing backslash at end of expression", r->at, r->at);
    TRY(regex_take_rune(r, &c));
    if (c == 'x')
        return take_hex(r, from, ret_rune);
    /* A single digit would refer to a group, which is not supported. */
    if (c == '0' || (c >= '1' && c <= '7' && is_octal(regex_peek(r)))) {
        uint32_t rune = c - '0';
        for (int i = 0; i < 2 && is_octal(regex_peek(r)); i++, r->at++)
            rune = rune * 8 + regex_peek(r) - '0';
        *ret_rune = rune;
        return ST_OK;
    }
    const char *letter = c && c < 0x80 ? strchr(letters, (int)c) : NULL;
    bool is_punctuation = c < 0x80 && (!regex_is_word(c) || c == '_');
    if (!letter && !is_punctuation)
        return regex_fail(r, "invalid escape sequence", from, r->at);
    *ret_rune = letter ? (uint32_t)meanings[letter - letters] : c;
    return ST_OK;
}

/* -- Nodes -- */

static enum status make(struct builder *b, struct regex_node node, struct regex_node **ret_node)
{
    struct regex_node *made = arena_alloc(b->reader.parser->scratch, sizeof(*made));
    if (!made)
        return ST_NOMEM;
    if (node.height > REGEX_DEPTH_MAX)
        return fail_whole(&b->reader, "expression nests too deeply");
    *made = node;
    *ret_node = made;
    return ST_OK;
}

/* Adds a part of another list, from one node to another. */
static void splice(struct nodes *list, struct regex_node *first, struct regex_node *last)
{
    last->next = NULL;
    if (list->last)
        list->last->next = first;
    else
        list->first = first;
    list->last = last;
    list->count++;
}

static enum status push(struct builder *b, struct regex_node node)
{
    struct regex_node *made;
    node.repeats = 1;
    node.height = 1;
    TRY(make(b, node, &made));
    splice(&b->group->items, made, made);
    return ST_OK;
}

static enum status push_class(struct builder *b, const struct regex_class *class)
{
    return push(b, (struct regex_node){.op = REGEX_NODE_CLASS, .class = class});
}

static enum status push_rune(struct builder *b, uint32_t rune)
{
    const struct regex_class *class;
    if (!(b->reader.flags & FLAG_FOLD))
        return push(b, (struct regex_node){.op = REGEX_NODE_RUNE, .rune = rune});
    TRY(regex_folded_rune(&b->reader, rune, &class));
    return push_class(b, class);
}

static enum status push_place(struct builder *b, enum regex_place place)
{
    return push(b, (struct regex_node){.op = REGEX_NODE_AT, .nullable = true, .place = place});
}

/*
 * The node of a list: its only member, or a sequence or alternatives. Members of the same kind are
 * replaced by their children, which costs nothing, because these are a list.
 */
static enum status join(struct builder *b, const struct nodes *list, enum regex_node_op op,
                        struct regex_node **ret_node)
{
    struct regex_node all = {.op = (uint8_t)op, .repeats = 1, .height = 1};
    struct nodes flat = {0};
    if (list->count == 1) {
        *ret_node = list->first;
        return ST_OK;
    }
    bool is_sequence = op == REGEX_NODE_SEQUENCE, is_text = is_sequence;
    all.nullable = is_sequence;
    for (struct regex_node *node = list->first, *next; node; node = next) {
        next = node->next;
        bool same = node->op == op;
        uint16_t height = same ? node->height : (uint16_t)(node->height + 1);
        is_text &= node->op == REGEX_NODE_RUNE;
        all.height = height > all.height ? height : all.height;
        all.repeats = node->repeats > all.repeats ? node->repeats : all.repeats;
        all.nullable =
            is_sequence ? all.nullable && node->nullable : all.nullable || node->nullable;
        if (same)
            splice(&flat, node->first, node->last);
        else
            splice(&flat, node, node);
    }
    if (is_text)
        all.height = 1;
    all.first = flat.first;
    all.last = flat.last;
    return make(b, all, ret_node);
}

/* -- Groups -- */

static enum status open_group(struct builder *b, bool captures)
{
    struct open_group *group = arena_calloc(b->reader.parser->scratch, 1, sizeof(*group));
    if (!group)
        return ST_NOMEM;
    group->outer = b->group;
    group->flags = b->reader.flags;
    group->captures = captures;
    b->group = group;
    return ST_OK;
}

static enum status end_sequence(struct builder *b)
{
    struct open_group *group = b->group;
    struct regex_node *sequence;
    if (!group->items.count)
        TRY(push(b, (struct regex_node){.op = REGEX_NODE_EMPTY, .nullable = true}));
    TRY(join(b, &group->items, REGEX_NODE_SEQUENCE, &sequence));
    splice(&group->alternatives, sequence, sequence);
    group->items = (struct nodes){0};
    return ST_OK;
}

/* Ends the innermost group, without its parenthesis. */
static enum status end_alternatives(struct builder *b, struct regex_node **ret_node)
{
    TRY(end_sequence(b));
    return join(b, &b->group->alternatives, REGEX_NODE_ALTERNATIVES, ret_node);
}

static enum status close_group(struct builder *b)
{
    struct open_group *group = b->group;
    struct regex_node *body, *closed;
    TRY(end_alternatives(b, &body));
    if (!group->outer)
        return fail_whole(&b->reader, "unexpected )");
    b->group = group->outer;
    b->reader.flags = group->flags;
    b->reader.at++;
    if (!group->captures) {
        splice(&b->group->items, body, body);
        return ST_OK;
    }
    TRY(make(b,
             (struct regex_node){.op = REGEX_NODE_GROUP,
                                 .nullable = body->nullable,
                                 .height = (uint16_t)(body->height + 1),
                                 .repeats = body->repeats,
                                 .first = body,
                                 .last = body},
             &closed));
    splice(&b->group->items, closed, closed);
    return ST_OK;
}

static bool is_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!regex_is_word(name.ptr[i]))
            return false;
    return name.len;
}

/* (?P<name> or (?<name>, at the parenthesis; the name has no meaning here. */
static enum status open_named(struct builder *b, size_t name_from)
{
    struct regex_reader *r = &b->reader;
    const uint8_t *end = memchr(r->pattern.ptr + r->at, '>', r->pattern.len - r->at);
    if (!end) {
        TRY(regex_check_utf8(r, r->at, r->pattern.len));
        return regex_fail(r, "invalid named capture", r->at, r->pattern.len);
    }
    size_t name_end = (size_t)(end - r->pattern.ptr);
    TRY(regex_check_utf8(r, name_from, name_end));
    if (!is_name(slice_sub(r->pattern, name_from, name_end - name_from)))
        return regex_fail(r, "invalid named capture", r->at, name_end + 1);
    r->at = name_end + 1;
    return open_group(b, true);
}

static unsigned flag_of(uint32_t letter)
{
    static const char letters[] = "imsU";
    static const unsigned flags[] = {FLAG_FOLD, FLAG_LINES, FLAG_DOT_ALL, FLAG_LAZY};
    const char *found = letter && letter < 0x80 ? strchr(letters, (int)letter) : NULL;
    return found ? flags[found - letters] : 0;
}

/* "(?": flags, which apply to the end of the enclosing group, or a group with flags of its own. */
static enum status take_flags(struct builder *b)
{
    struct regex_reader *r = &b->reader;
    size_t from = r->at;
    unsigned flags = r->flags;
    bool off = false, any = false;
    uint32_t c = 0;
    if (regex_ahead(r, "(?P<") && r->pattern.len - from > 4)
        return open_named(b, from + 4);
    if (regex_ahead(r, "(?<") && r->pattern.len - from > 3)
        return open_named(b, from + 3);
    r->at += 2;
    while (regex_more(r)) {
        TRY(regex_take_rune(r, &c));
        unsigned flag = flag_of(c);
        if (!flag && (c != '-' || off))
            break;
        any = flag;
        off |= c == '-';
        flags = off ? flags & ~flag : flags | flag;
    }
    if ((c != ':' && c != ')') || (off && !any))
        return regex_fail(r, "invalid or unsupported Perl syntax", from, r->at);
    if (c == ':')
        TRY(open_group(b, false));
    r->flags = flags;
    return ST_OK;
}

/* -- Repeats -- */

/* A number without leading zeros; -1: it is very large. False: there is none. */
static bool take_number(const struct regex_reader *r, size_t *at, int *ret_number)
{
    const uint8_t *text = r->pattern.ptr;
    size_t from = *at, end = from;
    int number = 0;
    while (end < r->pattern.len && text[end] >= '0' && text[end] <= '9')
        end++;
    if (end == from || (end > from + 1 && text[from] == '0'))
        return false;
    for (size_t i = from; i < end && number <= REGEX_REPEAT_MAX; i++)
        number = number * 10 + text[i] - '0';
    *ret_number = number;
    *at = end;
    return true;
}

/* {2}, {2,}, {2,5}; any other brace is literal. max -1: unlimited. */
static bool take_braces(struct regex_reader *r, int *ret_min, int *ret_max)
{
    size_t at = r->at + 1;
    if (!take_number(r, &at, ret_min))
        return false;
    *ret_max = *ret_min;
    if (at < r->pattern.len && r->pattern.ptr[at] == ',') {
        at++;
        *ret_max = -1;
        if (at < r->pattern.len && r->pattern.ptr[at] != '}' && !take_number(r, &at, ret_max))
            return false;
    }
    if (at >= r->pattern.len || r->pattern.ptr[at] != '}')
        return false;
    r->at = at + 1;
    return true;
}

static struct regex_node *copy_node(struct builder *b, const struct regex_node *node)
{
    struct regex_node *copy = arena_alloc(b->reader.parser->scratch, sizeof(*copy));
    if (copy)
        *copy = *node;
    return copy;
}

/* Repeats the last item. `from` is the place of the operator, which has been read. */
static enum status repeat(struct builder *b, size_t from, int min, int max, bool counted)
{
    struct regex_reader *r = &b->reader;
    struct nodes *items = &b->group->items;
    bool lazy = regex_accept(r, '?') != ((r->flags & FLAG_LAZY) != 0);
    if (b->repeat_from != NO_REPEAT)
        return regex_fail(r, "invalid nested repetition operator", b->repeat_from, r->at);
    if (!items->count)
        return regex_fail(r, "missing argument to repetition operator", from, r->at);
    struct regex_node *child = copy_node(b, items->last);
    if (!child)
        return ST_NOMEM;
    int times = !counted ? 1 : max < 0 ? min : max;
    /* What is repeated no times at all does not count. */
    int repeats = counted && max == 0 ? 1 : (times > 1 ? times : 1) * child->repeats;
    if (child->height + 1 > REGEX_DEPTH_MAX)
        return fail_whole(r, "expression nests too deeply");
    if (repeats > REGEX_REPEAT_MAX)
        return regex_fail(r, "invalid repeat count", from, r->at);
    *items->last = (struct regex_node){.op = REGEX_NODE_REPEAT,
                                       .lazy = lazy,
                                       .nullable = min == 0 || child->nullable,
                                       .height = (uint16_t)(child->height + 1),
                                       .repeats = (uint16_t)repeats,
                                       .min = (int16_t)min,
                                       .max = (int16_t)max,
                                       .first = child,
                                       .last = child};
    b->repeat_from = from;
    return ST_OK;
}

static enum status take_repeat(struct builder *b)
{
    struct regex_reader *r = &b->reader;
    size_t from = r->at;
    int min, max;
    switch (regex_peek(r)) {
    case '*':
        r->at++;
        return repeat(b, from, 0, -1, false);
    case '+':
        r->at++;
        return repeat(b, from, 1, -1, false);
    case '?':
        r->at++;
        return repeat(b, from, 0, 1, false);
    default:
        break;
    }
    if (!take_braces(r, &min, &max)) {
        r->at++;
        b->repeat_from = NO_REPEAT;
        return push_rune(b, '{');
    }
    if (min > REGEX_REPEAT_MAX || max > REGEX_REPEAT_MAX || (max >= 0 && max < min))
        return regex_fail(r, "invalid repeat count", from, r->at);
    return repeat(b, from, min, max, true);
}

/* -- Items -- */

/* \Qtext\E, at the backslash: everything in it is literal. */
static enum status take_quoted(struct builder *b)
{
    struct regex_reader *r = &b->reader;
    struct slice pattern = r->pattern;
    uint32_t rune;
    r->at += 2;
    const uint8_t *end = memmem(pattern.ptr + r->at, pattern.len - r->at, "\\E", 2);
    if (end)
        r->pattern.len = (size_t)(end - pattern.ptr);
    while (regex_more(r)) {
        TRY(regex_take_rune(r, &rune));
        TRY(push_rune(b, rune));
    }
    r->pattern = pattern;
    r->at += end ? 2 : 0;
    return ST_OK;
}

static enum status take_backslash(struct builder *b)
{
    static const char places[] = "AzbB";
    static const enum regex_place meanings[] = {REGEX_TEXT_BEGIN, REGEX_TEXT_END, REGEX_WORD_EDGE,
                                                REGEX_NO_WORD_EDGE};
    struct regex_reader *r = &b->reader;
    const struct regex_class *class;
    uint32_t rune;
    uint8_t letter = r->pattern.len - r->at > 1 ? r->pattern.ptr[r->at + 1] : 0;
    const char *place = letter && letter < 0x80 ? strchr(places, letter) : NULL;
    if (place) {
        r->at += 2;
        return push_place(b, meanings[place - places]);
    }
    if (letter == 'Q')
        return take_quoted(b);
    TRY(regex_take_class_escape(r, &class));
    if (class)
        return push_class(b, class);
    TRY(regex_take_escape(r, &rune));
    return push_rune(b, rune);
}

static enum status take_any(struct builder *b)
{
    const struct regex_class *class;
    b->reader.at++;
    TRY(regex_any(&b->reader, b->reader.flags & FLAG_DOT_ALL, &class));
    return push_class(b, class);
}

static enum status take_place(struct builder *b, enum regex_place of_text, enum regex_place of_line)
{
    b->reader.at++;
    return push_place(b, b->reader.flags & FLAG_LINES ? of_line : of_text);
}

static enum status take_item(struct builder *b)
{
    struct regex_reader *r = &b->reader;
    const struct regex_class *class;
    uint32_t rune;
    switch (regex_peek(r)) {
    case '(':
        if (regex_ahead(r, "(?"))
            return take_flags(b);
        r->at++;
        return open_group(b, true);
    case '|':
        r->at++;
        return end_sequence(b);
    case ')':
        return close_group(b);
    case '^':
        return take_place(b, REGEX_TEXT_BEGIN, REGEX_LINE_BEGIN);
    case '$':
        return take_place(b, REGEX_TEXT_END, REGEX_LINE_END);
    case '.':
        return take_any(b);
    case '[':
        TRY(regex_take_class(r, &class));
        return push_class(b, class);
    case '\\':
        return take_backslash(b);
    default:
        TRY(regex_take_rune(r, &rune));
        return push_rune(b, rune);
    }
}

static size_t find_names_end(struct slice pattern)
{
    size_t end = pattern.len ? pattern.len - 1 : 0;
    while (end && memcmp(pattern.ptr + end - 1, ":]", 2) != 0)
        end--;
    return end;
}

enum status regex_parse(struct regex_parser *parser, struct regex_node **ret_root)
{
    struct builder b = {.reader = {.parser = parser, .pattern = parser->pattern},
                        .repeat_from = NO_REPEAT};
    b.reader.names_end = find_names_end(parser->pattern);
    TRY(open_group(&b, false));
    while (regex_more(&b.reader)) {
        uint8_t c = regex_peek(&b.reader);
        if (c == '*' || c == '+' || c == '?' || c == '{') {
            TRY(take_repeat(&b));
            continue;
        }
        b.repeat_from = NO_REPEAT;
        TRY(take_item(&b));
    }
    TRY(end_alternatives(&b, ret_root));
    return b.group->outer ? fail_whole(&b.reader, "missing closing )") : ST_OK;
}
