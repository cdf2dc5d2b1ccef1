#include "cel/syntax/parser.h"

#include "cel/syntax/builder.h"
#include "cel/syntax/literal.h"
#include "cel/syntax/macro.h"
#include "cel/syntax/words.h"
#include "codec/utf8.h"

/*
 * Recursive descent, one function for each rule of the grammar:
 *
 *     expr      = or [ "?" or ":" expr ]
 *     or        = and { "||" and }
 *     and       = relation { "&&" relation }
 *     relation  = calc { ("<" | "<=" | ">=" | ">" | "==" | "!=" | "in") relation }
 *     calc      = unary { ("*" | "/" | "%" | "+" | "-") calc }
 *     unary     = member | "!" … member | "-" … member
 *     member    = primary { "." ["?"] name | "." name "(" … ")" | "[" ["?"] expr "]" }
 *     primary   = ["."] name | ["."] name "(" … ")" | "(" expr ")" | list | map | struct | literal
 *
 * A function returns NULL after a syntax error, or without memory; p->words.failed is true then.
 */
struct parser {
    struct cel_words words;
    struct arena *arena;
    uint32_t copies; /* nodes that macros may still copy */
    /* How many calls of these rules are under way, which cel-go limits one by one. */
    uint16_t exprs, relations, calcs;
};

static struct cel_expr *parse_expr(struct parser *p);

/* An expression within parentheses or the like, which one of these words follows. also_expected
 * may be there instead of it. */
static struct cel_expr *parse_within(struct parser *p, uint64_t follow, uint64_t also_expected)
{
    uint64_t outer = p->words.follow;
    p->words.follow = follow;
    p->words.also_expected = also_expected;
    struct cel_expr *expr = parse_expr(p);
    p->words.follow = outer;
    return expr;
}

/* -- Nodes -- */

/* Takes back what the parser made if there was no memory for it. */
static struct cel_expr *made(struct parser *p, struct cel_expr *expr)
{
    p->words.failed |= !expr;
    return expr;
}

static bool enter(struct parser *p, uint16_t *depth)
{
    if (++*depth > CEL_NESTING_MAX && !p->words.failed) {
        cel_error_add(p->words.errors, CEL_NO_PLACE, "expression recursion limit exceeded: %d",
                      CEL_NESTING_MAX);
        p->words.failed = true;
    }
    return !p->words.failed;
}

/* One more operator or selection around what is in the expression. */
static struct cel_expr *nest(struct parser *p, uint16_t inner, struct cel_expr *expr)
{
    if (!made(p, expr))
        return NULL;
    expr->nesting = (uint16_t)(inner + 1);
    if (expr->nesting > CEL_NESTING_MAX) {
        cel_error_add(p->words.errors, CEL_NO_PLACE, "max recursion depth exceeded");
        p->words.failed = true;
    }
    return p->words.failed ? NULL : expr;
}

static uint16_t nesting_of(const struct cel_expr *a, const struct cel_expr *b)
{
    uint16_t inner = a ? a->nesting : 0;
    return b && b->nesting > inner ? b->nesting : inner;
}

static struct cel_expr *make_operator(struct parser *p, uint32_t offset, const char *name,
                                      struct cel_expr *a, struct cel_expr *b)
{
    if (!a || !b)
        return NULL;
    return nest(p, nesting_of(a, b), cel_make_function(p->arena, offset, name, a, b, NULL));
}

/* Expressions that are collected until their number is known. */
struct collected {
    struct cel_exprs exprs;
    bool *flags; /* `room` of them */
    uint32_t room;
};

static bool collect(struct parser *p, struct collected *all, struct cel_expr *expr, bool flag)
{
    if (!expr)
        return false;
    if (all->exprs.count == all->room) {
        uint32_t room = all->room ? 2 * all->room : 4;
        struct cel_expr **at = arena_calloc(p->arena, room, sizeof(struct cel_expr *));
        bool *flags = arena_calloc(p->arena, room, sizeof(*flags));
        if (!at || !flags) {
            p->words.failed = true;
            return false;
        }
        if (all->room) {
            memcpy(at, all->exprs.at, all->room * sizeof(struct cel_expr *));
            memcpy(flags, all->flags, all->room * sizeof(*flags));
        }
        all->exprs.at = at;
        all->flags = flags;
        all->room = room;
    }
    all->flags[all->exprs.count] = flag;
    all->exprs.at[all->exprs.count++] = expr;
    return true;
}

/* The call, or what its macro becomes. */
static struct cel_expr *make_call(struct parser *p, uint32_t offset, const struct cel_call *call)
{
    struct cel_expr *expr;
    if (!cel_expand_macro(p->words.errors, offset, call, &p->copies, &expr))
        expr = cel_make_call(p->arena, offset, call);
    return made(p, expr);
}

/* -- Primary expressions -- */

bool cel_is_reserved(struct slice name)
{
    static const char *const reserved[] = {
        "as",  "break", "const",   "continue",  "else",   "for", "function", "if",    "import",
        "let", "loop",  "package", "namespace", "return", "var", "void",     "while",
    };
    for (size_t i = 0; i < COUNT_OF(reserved); i++)
        if (slice_equal(name, slice_from_text(reserved[i])))
            return true;
    return false;
}

/* The arguments of a call, behind its parenthesis. */
static bool parse_args(struct parser *p, struct cel_exprs *ret_args)
{
    const uint64_t follow = BIT(RIGHT_PAREN) | BIT(COMMA);
    struct collected args = {0};
    if (!cel_words_take(&p->words, CEL_TOKEN_RIGHT_PAREN)) {
        if (!collect(p, &args, parse_within(p, follow, BIT(RIGHT_PAREN)), false))
            return false;
        while (cel_words_take(&p->words, CEL_TOKEN_COMMA))
            if (!collect(p, &args, parse_within(p, follow, 0), false))
                return false;
        if (!cel_words_expect(&p->words, CEL_TOKEN_RIGHT_PAREN, 0))
            return false;
    }
    *ret_args = args.exprs;
    return true;
}

static struct cel_expr *parse_ident(struct parser *p)
{
    uint32_t begin = p->words.token.offset;
    bool is_rooted = cel_words_take(&p->words, CEL_TOKEN_DOT);
    struct cel_token word = p->words.token;
    if (word.kind != CEL_TOKEN_IDENTIFIER) {
        cel_words_fail_at(&p->words, begin);
        return NULL;
    }
    cel_words_advance(&p->words);
    struct slice name = word.text;
    if (is_rooted) {
        uint8_t *dotted = arena_alloc(p->arena, name.len + 1);
        if (!dotted)
            return made(p, NULL);
        dotted[0] = '.';
        slice_copy(dotted + 1, name);
        name = slice_of(dotted, name.len + 1);
    }

    struct cel_call call = {.function = name};
    uint32_t paren = p->words.token.offset;
    bool is_call = cel_words_take(&p->words, CEL_TOKEN_LEFT_PAREN);
    if (is_call && !parse_args(p, &call.args))
        return NULL;
    if (is_call && cel_is_reserved(word.text)) {
        cel_error_add(p->words.errors, begin, "reserved identifier: %.*s", SLICE_ARGS(word.text));
        return made(p, cel_make_invalid(p->arena, begin));
    }
    return is_call ? make_call(p, paren, &call)
                   : made(p, cel_make_ident(p->arena, word.offset, name));
}

static struct cel_expr *parse_list(struct parser *p)
{
    const uint64_t follow = BIT(RIGHT_BRACKET) | BIT(COMMA);
    uint32_t offset = p->words.token.offset;
    struct collected items = {0};
    bool any_optional = false;
    cel_words_advance(&p->words);
    /* A comma may follow the last item, or stand alone. */
    bool ends_with_comma = cel_words_take(&p->words, CEL_TOKEN_COMMA);
    while (!ends_with_comma && p->words.token.kind != CEL_TOKEN_RIGHT_BRACKET) {
        bool optional = cel_words_take(&p->words, CEL_TOKEN_QUESTION);
        uint64_t instead = optional || items.exprs.count ? 0 : follow | BIT(QUESTION);
        any_optional |= optional;
        if (!collect(p, &items, parse_within(p, follow, instead), optional))
            return NULL;
        if (!cel_words_take(&p->words, CEL_TOKEN_COMMA))
            break;
        ends_with_comma = !cel_word_in(p->words.token.kind, BEGINS_EXPR | BIT(QUESTION));
    }
    if (!cel_words_expect(&p->words, CEL_TOKEN_RIGHT_BRACKET, ends_with_comma ? 0 : BIT(COMMA)))
        return NULL;
    struct cel_list list = {.items = items.exprs, .optional = any_optional ? items.flags : NULL};
    return made(p, cel_make_list(p->arena, offset, &list));
}

/* The name of a field: a word, or one in backticks, which Kubernetes has not enabled. False
 * after a syntax error. */
static bool parse_field_name(struct parser *p, struct slice *ret_name)
{
    *ret_name = p->words.token.text;
    if (cel_words_take(&p->words, CEL_TOKEN_IDENTIFIER))
        return true;
    if (p->words.token.kind != CEL_TOKEN_ESCAPED_IDENTIFIER)
        return false;
    cel_error_add(p->words.errors, p->words.token.offset, "unsupported syntax: '`'");
    cel_words_advance(&p->words);
    return true;
}

static bool add_entry(struct parser *p, struct cel_entries *entries, uint32_t *room,
                      const struct cel_entry *entry)
{
    if (entries->count == *room) {
        uint32_t more = *room ? 2 * *room : 4;
        struct cel_entry *at = arena_calloc(p->arena, more, sizeof(*at));
        if (!at) {
            p->words.failed = true;
            return false;
        }
        if (*room)
            memcpy(at, entries->at, *room * sizeof(*at));
        entries->at = at;
        *room = more;
    }
    entries->at[entries->count++] = *entry;
    return true;
}

/* instead: words that may be there instead of the entry. */
static bool parse_entry(struct parser *p, bool is_map, uint64_t instead,
                        struct cel_entry *ret_entry)
{
    *ret_entry = (struct cel_entry){.optional = cel_words_take(&p->words, CEL_TOKEN_QUESTION)};
    instead = ret_entry->optional ? 0 : instead;
    if (is_map) {
        ret_entry->key = parse_within(p, BIT(COLON), instead);
        if (!ret_entry->key)
            return false;
    } else if (!parse_field_name(p, &ret_entry->field)) {
        cel_words_fail(&p->words, NAMES | instead);
        return false;
    }
    ret_entry->offset = p->words.token.offset;
    if (!cel_words_expect(&p->words, CEL_TOKEN_COLON, 0))
        return false;
    ret_entry->value = parse_within(p, BIT(COMMA) | BIT(RIGHT_BRACE), 0);
    return ret_entry->value != NULL;
}

/* A map, or a struct if it has the name of a type. The brace is the current word. */
static struct cel_expr *parse_entries(struct parser *p, struct slice type_name)
{
    bool is_map = type_name.len == 0;
    uint32_t offset = p->words.token.offset;
    struct cel_entries entries = {.type_name = type_name};
    uint32_t room = 0;
    cel_words_advance(&p->words);
    bool ends_with_comma = cel_words_take(&p->words, CEL_TOKEN_COMMA);
    while (!ends_with_comma && p->words.token.kind != CEL_TOKEN_RIGHT_BRACE) {
        uint64_t instead = BIT(QUESTION) | BIT(COMMA) | BIT(RIGHT_BRACE);
        struct cel_entry entry;
        if (!parse_entry(p, is_map, entries.count ? 0 : instead, &entry) ||
            !add_entry(p, &entries, &room, &entry))
            return NULL;
        if (!cel_words_take(&p->words, CEL_TOKEN_COMMA))
            break;
        ends_with_comma =
            !cel_word_in(p->words.token.kind, BIT(QUESTION) | (is_map ? BEGINS_EXPR : NAMES));
    }
    if (!cel_words_expect(&p->words, CEL_TOKEN_RIGHT_BRACE, ends_with_comma ? 0 : BIT(COMMA)))
        return NULL;
    return made(p, cel_make_entries(p->arena, offset, &entries));
}

static struct cel_expr *parse_literal(struct parser *p)
{
    uint32_t offset = p->words.token.offset;
    bool negative = cel_words_take(&p->words, CEL_TOKEN_MINUS);
    struct cel_literal literal = {0};
    struct cel_token word = p->words.token;
    if (negative && word.kind != CEL_TOKEN_INT && word.kind != CEL_TOKEN_DOUBLE) {
        cel_words_fail_at(&p->words, offset);
        return NULL;
    }
    cel_words_advance(&p->words);
    if (cel_read_literal(p->words.errors, &word, negative, offset, &literal))
        return made(p, cel_make_literal(p->arena, offset, literal));
    return made(p, cel_make_invalid(p->arena, offset));
}

static struct cel_expr *parse_primary(struct parser *p)
{
    switch (p->words.token.kind) {
    case CEL_TOKEN_DOT:
    case CEL_TOKEN_IDENTIFIER:
        return parse_ident(p);
    case CEL_TOKEN_LEFT_PAREN: {
        cel_words_advance(&p->words);
        struct cel_expr *expr = parse_within(p, BIT(RIGHT_PAREN), 0);
        return expr && cel_words_expect(&p->words, CEL_TOKEN_RIGHT_PAREN, 0) ? expr : NULL;
    }
    case CEL_TOKEN_LEFT_BRACKET:
        return parse_list(p);
    case CEL_TOKEN_LEFT_BRACE:
        return parse_entries(p, SLICE_EMPTY);
    case CEL_TOKEN_NOT: /* behind a minus */
    {
        cel_words_fail(&p->words, BEGINS_EXPR);
        return NULL;
    }
    default:
        return parse_literal(p);
    }
}

/* -- Members -- */

static struct cel_expr *parse_selection(struct parser *p, struct cel_expr *operand)
{
    uint32_t dot = p->words.token.offset;
    cel_words_advance(&p->words);
    bool optional = cel_words_take(&p->words, CEL_TOKEN_QUESTION);
    struct cel_token word = p->words.token;
    struct slice name;
    if (!parse_field_name(p, &name)) {
        bool is_constant = word.kind == CEL_TOKEN_TRUE || word.kind == CEL_TOKEN_FALSE ||
                           word.kind == CEL_TOKEN_NULL;
        if (!optional && !is_constant) {
            cel_words_fail_at(&p->words, dot);
            return NULL;
        }
        cel_words_fail(&p->words, optional ? NAMES : BIT(IDENTIFIER));
        if (optional)
            cel_error_add(p->words.errors, word.offset, "unsupported ident kind");
        return NULL;
    }
    if (optional) {
        struct cel_expr *field = cel_make_literal(
            p->arena, word.offset, (struct cel_literal){.kind = CEL_LITERAL_STRING, .text = name});
        return make_operator(p, dot, "_?._", operand, made(p, field));
    }
    uint32_t paren = p->words.token.offset;
    if (word.kind != CEL_TOKEN_IDENTIFIER || !cel_words_take(&p->words, CEL_TOKEN_LEFT_PAREN))
        return nest(p, operand->nesting,
                    cel_make_select(p->arena, dot,
                                    &(struct cel_select){.operand = operand, .field = name}));

    struct cel_call call = {.function = name, .target = operand};
    if (!parse_args(p, &call.args))
        return NULL;
    uint16_t inner = operand->nesting;
    for (uint32_t i = 0; i < call.args.count; i++)
        inner = call.args.at[i]->nesting > inner ? call.args.at[i]->nesting : inner;
    return nest(p, inner, make_call(p, paren, &call));
}

static struct cel_expr *parse_index(struct parser *p, struct cel_expr *operand)
{
    uint32_t bracket = p->words.token.offset;
    cel_words_advance(&p->words);
    bool optional = cel_words_take(&p->words, CEL_TOKEN_QUESTION);
    struct cel_expr *index = parse_within(p, BIT(RIGHT_BRACKET), optional ? 0 : BIT(QUESTION));
    if (!index || !cel_words_expect(&p->words, CEL_TOKEN_RIGHT_BRACKET, 0))
        return NULL;
    return make_operator(p, bracket, optional ? "_[?_]" : "_[_]", operand, index);
}

/* Variables and functions cannot have a reserved name, but types and fields can. */
static void check_reserved(struct parser *p, uint32_t offset, const struct cel_token *first)
{
    struct slice name = first->text;
    if (first->kind == CEL_TOKEN_IDENTIFIER && cel_is_reserved(name))
        cel_error_add(p->words.errors, offset, "reserved identifier: %.*s", SLICE_ARGS(name));
}

static struct cel_expr *parse_member(struct parser *p)
{
    if (!cel_words_find_expr(&p->words))
        return NULL;
    struct cel_token first = p->words.token, second = p->words.ahead;
    struct cel_expr *expr = parse_primary(p);
    /* a.b.C{…} is a struct, but neither are (a).b{…} and a.f().b{…}. */
    bool is_ident = expr && expr->kind == CEL_EXPR_IDENT && first.kind != CEL_TOKEN_LEFT_PAREN;
    bool is_struct = false;
    while (expr && !p->words.failed) {
        if (p->words.token.kind == CEL_TOKEN_DOT) {
            expr = parse_selection(p, expr);
        } else if (p->words.token.kind == CEL_TOKEN_LEFT_BRACKET) {
            expr = parse_index(p, expr);
        } else if (p->words.token.kind == CEL_TOKEN_LEFT_BRACE && is_ident && !is_struct) {
            struct slice name = cel_qualified_name(p->arena, expr);
            if (!name.len)
                break;
            expr = parse_entries(p, name);
            is_struct = true;
        } else {
            break;
        }
    }
    if (is_ident && !is_struct)
        check_reserved(p, first.offset, first.kind == CEL_TOKEN_DOT ? &second : &first);
    return expr;
}

/* -- Operators -- */

static struct cel_expr *parse_unary(struct parser *p)
{
    if (!cel_words_find_expr(&p->words))
        return NULL;
    uint32_t offset = p->words.token.offset;
    enum cel_token_kind sign = p->words.token.kind;
    bool is_number =
        p->words.ahead.kind == CEL_TOKEN_INT || p->words.ahead.kind == CEL_TOKEN_DOUBLE;
    /* The minus before a number belongs to it, unless another one precedes it. */
    if (sign != CEL_TOKEN_NOT && (sign != CEL_TOKEN_MINUS || is_number))
        return parse_member(p);
    bool odd = false;
    for (; cel_words_take(&p->words, sign); odd = !odd)
        ;
    if (sign == CEL_TOKEN_MINUS && !cel_word_in(p->words.token.kind, BEGINS_EXPR & ~BIT(NOT))) {
        cel_words_fail_at(&p->words, offset);
        return NULL;
    }
    if (!cel_word_in(p->words.token.kind, BEGINS_EXPR)) {
        cel_words_fail_superfluous(&p->words, BEGINS_EXPR);
        return NULL;
    }
    struct cel_expr *expr = parse_member(p);
    if (!expr || !odd)
        return expr;
    return made(p, cel_make_function(p->arena, offset, sign == CEL_TOKEN_NOT ? "!_" : "-_", expr,
                                     NULL, NULL));
}

/* How tightly an operator binds; 0: the word belongs to another rule. */
static int calc_operator(enum cel_token_kind kind, const char **ret_function)
{
    switch (kind) {
    case CEL_TOKEN_TIMES:
        *ret_function = "_*_";
        return 2;
    case CEL_TOKEN_DIVIDE:
        *ret_function = "_/_";
        return 2;
    case CEL_TOKEN_MODULO:
        *ret_function = "_%_";
        return 2;
    case CEL_TOKEN_PLUS:
        *ret_function = "_+_";
        return 1;
    case CEL_TOKEN_MINUS:
        *ret_function = "_-_";
        return 1;
    default:
        return 0;
    }
}

/* Operators that bind at least as tightly as `least`. */
static struct cel_expr *parse_calc(struct parser *p, int least)
{
    const char *function = NULL;
    if (!enter(p, &p->calcs))
        return NULL;
    struct cel_expr *expr = parse_unary(p);
    while (expr && !p->words.failed) {
        uint32_t offset = p->words.token.offset;
        int strength = calc_operator(p->words.token.kind, &function);
        if (!strength || strength < least)
            break;
        cel_words_advance(&p->words);
        expr = make_operator(p, offset, function, expr, parse_calc(p, strength + 1));
    }
    p->calcs--;
    return expr;
}

static const char *relation_operator(enum cel_token_kind kind)
{
    switch (kind) {
    case CEL_TOKEN_LESS:
        return "_<_";
    case CEL_TOKEN_LESS_EQUALS:
        return "_<=_";
    case CEL_TOKEN_GREATER_EQUALS:
        return "_>=_";
    case CEL_TOKEN_GREATER:
        return "_>_";
    case CEL_TOKEN_EQUALS:
        return "_==_";
    case CEL_TOKEN_NOT_EQUALS:
        return "_!=_";
    case CEL_TOKEN_IN:
        return "@in";
    default:
        return NULL;
    }
}

static struct cel_expr *parse_relation(struct parser *p, bool is_right_side)
{
    if (!enter(p, &p->relations))
        return NULL;
    struct cel_expr *expr = parse_calc(p, 1);
    while (expr && !p->words.failed && !is_right_side) {
        uint32_t offset = p->words.token.offset;
        const char *function = relation_operator(p->words.token.kind);
        if (!function)
            break;
        cel_words_advance(&p->words);
        expr = make_operator(p, offset, function, expr, parse_relation(p, true));
    }
    p->relations--;
    return expr;
}

/* Terms of && or ||, as a tree of the least height. A long list of conditions is not nested then.
 */
static struct cel_expr *balance(struct parser *p, const char *function, struct cel_expr **terms,
                                const uint32_t *operators, size_t count)
{
    if (count == 1)
        return terms[0];
    size_t middle = (count + 1) / 2;
    struct cel_expr *left = balance(p, function, terms, operators, middle);
    struct cel_expr *right =
        balance(p, function, terms + middle, operators + middle, count - middle);
    return made(p, cel_make_function(p->arena, operators[middle - 1], function, left, right, NULL));
}

struct terms {
    struct collected exprs;
    uint32_t *operators; /* offsets of the operators between them */
    uint32_t room;
};

static bool add_operator(struct parser *p, struct terms *terms, uint32_t offset)
{
    uint32_t count = terms->exprs.exprs.count;
    if (count > terms->room) {
        uint32_t *operators = arena_calloc(p->arena, 2 * (size_t)count, sizeof(*operators));
        if (!operators) {
            p->words.failed = true;
            return false;
        }
        if (terms->room)
            memcpy(operators, terms->operators, terms->room * sizeof(*operators));
        terms->operators = operators;
        terms->room = 2 * count;
    }
    terms->operators[count - 1] = offset;
    return true;
}

static struct cel_expr *parse_and(struct parser *p)
{
    struct terms terms = {0};
    uint32_t offset;
    do {
        if (!collect(p, &terms.exprs, parse_relation(p, false), false))
            return NULL;
        offset = p->words.token.offset;
    } while (cel_words_take(&p->words, CEL_TOKEN_AND) && add_operator(p, &terms, offset));
    if (p->words.failed)
        return NULL;
    return balance(p, "_&&_", terms.exprs.exprs.at, terms.operators, terms.exprs.exprs.count);
}

static struct cel_expr *parse_or(struct parser *p)
{
    struct terms terms = {0};
    uint32_t offset;
    do {
        if (!collect(p, &terms.exprs, parse_and(p), false))
            return NULL;
        offset = p->words.token.offset;
    } while (cel_words_take(&p->words, CEL_TOKEN_OR) && add_operator(p, &terms, offset));
    if (p->words.failed)
        return NULL;
    return balance(p, "_||_", terms.exprs.exprs.at, terms.operators, terms.exprs.exprs.count);
}

static struct cel_expr *parse_conditional(struct parser *p, struct cel_expr *condition)
{
    uint32_t offset = p->words.token.offset;
    cel_words_advance(&p->words);
    uint64_t outer = p->words.follow;
    p->words.follow = BIT(COLON);
    struct cel_expr *chosen = parse_or(p);
    p->words.follow = outer;
    if (!chosen || !cel_words_expect(&p->words, CEL_TOKEN_COLON, 0))
        return NULL;
    struct cel_expr *other = parse_expr(p);
    if (!other)
        return NULL;
    uint16_t inner = nesting_of(chosen, other);
    inner = condition->nesting > inner ? condition->nesting : inner;
    return nest(p, inner, cel_make_function(p->arena, offset, "_?_:_", condition, chosen, other));
}

static struct cel_expr *parse_expr(struct parser *p)
{
    if (!enter(p, &p->exprs))
        return NULL;
    struct cel_expr *expr = parse_or(p);
    if (expr && p->words.token.kind == CEL_TOKEN_QUESTION)
        expr = parse_conditional(p, expr);
    p->exprs--;
    return expr;
}

enum status cel_parse(struct cel_errors *errors, struct cel_expr **ret_root)
{
    size_t characters = utf8_count(errors->source);
    if (characters > CEL_SOURCE_CHARACTERS_MAX) {
        cel_error_add(errors, CEL_NO_PLACE,
                      "expression code point size exceeds limit: size: %zu, limit %d", characters,
                      CEL_SOURCE_CHARACTERS_MAX);
        return ST_INVALID;
    }
    struct parser p = {.arena = errors->arena, .copies = CEL_COPIES_MAX};
    cel_words_init(&p.words, errors);
    struct cel_expr *root = parse_expr(&p);
    bool complete = root && cel_words_expect(&p.words, CEL_TOKEN_END, 0);
    if (complete && root->height > CEL_EXPR_HEIGHT_MAX)
        cel_error_add(errors, CEL_NO_PLACE, "max recursion depth exceeded");
    /* Text that cannot be a word is reported behind a syntax error as well. */
    while (!complete && p.words.token.kind != CEL_TOKEN_END)
        cel_words_advance(&p.words);
    if (arena_ran_out(errors->arena))
        return ST_NOMEM;
    if (cel_errors_any(errors))
        return ST_INVALID;
    assert(complete && !p.words.failed);
    *ret_root = root;
    return ST_OK;
}
