#include "regex/tree.h"

enum { SCRATCH_BYTES_MAX = 16 << 20 };

struct compiler {
    struct regex_parser *parser;
    struct regex_step *steps;
    uint32_t count, room;
};

/* The end of a list of steps whose targets are not known yet. */
static const uint32_t NO_STEP = UINT32_MAX;

static enum status emit(struct compiler *c, struct regex_step step)
{
    if (c->count == REGEX_INSTRUCTIONS_MAX)
        return regex_too_large(c->parser);
    TRY(regex_spend(c->parser, 1));
    if (c->count == c->room) {
        uint32_t room = c->room ? 2 * c->room : 64;
        struct regex_step *steps = arena_alloc(c->parser->scratch, room * sizeof(*steps));
        if (!steps)
            return ST_NOMEM;
        if (c->count)
            memcpy(steps, c->steps, c->count * sizeof(*steps));
        c->steps = steps;
        c->room = room;
    }
    c->steps[c->count++] = step;
    return ST_OK;
}

/* A choice between the next step and `other`; a lazy one prefers the other. */
static enum status emit_split(struct compiler *c, uint32_t other, bool lazy)
{
    uint32_t next = c->count + 1;
    return emit(c, (struct regex_step){
                       .op = REGEX_SPLIT, .x = lazy ? other : next, .y = lazy ? next : other});
}

/* The target of a choice that is not the next step. */
static uint32_t *other_target(struct regex_step *step, bool lazy)
{
    return lazy ? &step->x : &step->y;
}

static enum status compile(struct compiler *c, const struct regex_node *node);

/* x*: a loop whose body may be empty is tried once more before it ends, as in Go. */
static enum status compile_star(struct compiler *c, const struct regex_node *body, bool lazy)
{
    uint32_t begin = c->count;
    TRY(emit_split(c, NO_STEP, lazy));
    TRY(compile(c, body));
    if (body->nullable) {
        TRY(emit_split(c, begin + 1, !lazy));
    } else {
        TRY(emit(c, (struct regex_step){.op = REGEX_JUMP, .x = begin}));
    }
    *other_target(&c->steps[begin], lazy) = c->count;
    return ST_OK;
}

/* x{2,5} is xx(x(x(x)?)?)?; all question marks lead to the end. */
static enum status compile_options(struct compiler *c, const struct regex_node *body, int count,
                                   bool lazy)
{
    uint32_t last = NO_STEP;
    for (int i = 0; i < count; i++) {
        uint32_t split = c->count;
        TRY(emit_split(c, last, lazy));
        last = split;
        TRY(compile(c, body));
    }
    while (last != NO_STEP) {
        uint32_t *target = other_target(&c->steps[last], lazy);
        last = *target;
        *target = c->count;
    }
    return ST_OK;
}

static enum status compile_repeat(struct compiler *c, const struct regex_node *node)
{
    const struct regex_node *body = node->first;
    if (node->max == 0 || body->op == REGEX_NODE_EMPTY)
        return ST_OK;
    for (int i = 0; i < node->min; i++) {
        uint32_t begin = c->count;
        TRY(compile(c, body));
        /* The last one of x{3,} is x+. */
        if (node->max < 0 && i + 1 == node->min)
            return emit_split(c, begin, !node->lazy);
    }
    if (node->max < 0)
        return compile_star(c, body, node->lazy);
    return compile_options(c, body, node->max - node->min, node->lazy);
}

static enum status compile_alternatives(struct compiler *c, const struct regex_node *node)
{
    uint32_t exits = NO_STEP; /* a list through their targets until the real one is known */
    for (const struct regex_node *child = node->first; child; child = child->next) {
        uint32_t split = c->count;
        if (child->next)
            TRY(emit_split(c, NO_STEP, false));
        TRY(compile(c, child));
        if (!child->next)
            break;
        uint32_t exit = c->count;
        TRY(emit(c, (struct regex_step){.op = REGEX_JUMP, .x = exits}));
        exits = exit;
        c->steps[split].y = c->count;
    }
    while (exits != NO_STEP) {
        uint32_t next = c->steps[exits].x;
        c->steps[exits].x = c->count;
        exits = next;
    }
    return ST_OK;
}

static enum status compile(struct compiler *c, const struct regex_node *node)
{
    switch ((enum regex_node_op)node->op) {
    case REGEX_NODE_EMPTY:
        return ST_OK;
    case REGEX_NODE_RUNE:
        return emit(c, (struct regex_step){.op = REGEX_RUNE, .x = node->rune});
    case REGEX_NODE_CLASS:
        return emit(c, (struct regex_step){.op = REGEX_CLASS, .class = node->class});
    case REGEX_NODE_AT:
        return emit(c, (struct regex_step){.op = REGEX_AT, .x = node->place});
    case REGEX_NODE_GROUP:
        return compile(c, node->first);
    case REGEX_NODE_SEQUENCE:
        for (const struct regex_node *child = node->first; child; child = child->next)
            TRY(compile(c, child));
        return ST_OK;
    case REGEX_NODE_ALTERNATIVES:
        return compile_alternatives(c, node);
    case REGEX_NODE_REPEAT:
        return compile_repeat(c, node);
    }
    return ST_OK;
}

/* Whether a match must begin at the beginning of a text. */
static bool is_anchored(const struct regex_node *node)
{
    switch ((enum regex_node_op)node->op) {
    case REGEX_NODE_AT:
        return node->place == REGEX_TEXT_BEGIN;
    case REGEX_NODE_GROUP:
    case REGEX_NODE_SEQUENCE:
        return is_anchored(node->first);
    case REGEX_NODE_ALTERNATIVES:
        for (const struct regex_node *child = node->first; child; child = child->next)
            if (!is_anchored(child))
                return false;
        return true;
    case REGEX_NODE_REPEAT:
        return node->min > 0 && is_anchored(node->first);
    default:
        return false;
    }
}

static enum status make_regex(struct regex_parser *parser, const struct regex **ret_regex)
{
    struct compiler c = {.parser = parser};
    struct regex_node *root;
    TRY(regex_spend(parser, parser->pattern.len / 16));
    TRY(regex_parse(parser, &root));
    TRY(compile(&c, root));
    TRY(emit(&c, (struct regex_step){.op = REGEX_FOUND}));
    struct regex *regex = arena_alloc(parser->arena, sizeof(*regex));
    struct regex_step *steps = arena_alloc(parser->arena, c.count * sizeof(*steps));
    if (!regex || !steps)
        return ST_NOMEM;
    memcpy(steps, c.steps, c.count * sizeof(*steps));
    *regex = (struct regex){.steps = steps, .count = c.count, .anchored = is_anchored(root)};
    *ret_regex = regex;
    return ST_OK;
}

enum status regex_compile_within(struct arena *arena, struct slice pattern, size_t *steps,
                                 const struct regex **ret_regex, struct error *error)
{
    _Alignas(ARENA_ALIGN) uint8_t first[4096];
    struct arena scratch;
    struct regex_parser parser = {
        .arena = arena, .scratch = &scratch, .pattern = pattern, .error = error};
    parser.steps_left = steps;
    if (pattern.len > REGEX_BYTES_MAX)
        return regex_too_large(&parser);
    arena_init(&scratch, first, sizeof(first), SCRATCH_BYTES_MAX);
    enum status status = make_regex(&parser, ret_regex);
    arena_fini(&scratch);
    return status;
}

enum status regex_compile(struct arena *arena, struct slice pattern, const struct regex **ret_regex,
                          struct error *error)
{
    size_t steps = SIZE_MAX;
    return regex_compile_within(arena, pattern, &steps, ret_regex, error);
}

uint32_t regex_effort(const struct regex *regex)
{
    return regex->count;
}
