#include "regex/regex_private.h"

/* The threads at one character, each at another step. */
struct thread_list {
    uint32_t *at;
    uint32_t *index; /* index of a step in `at`; valid only if `at` has the step there */
    uint32_t count;
};

struct regex_run {
    const struct regex *regex;
    struct slice text;
    struct thread_list now, next;
    uint32_t *stack;
    int64_t *steps;
};

uint32_t regex_rune(struct slice text, size_t at, size_t *ret_len)
{
    uint8_t c = text.ptr[at];
    size_t more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
    uint32_t rune = c & (0x3fu >> more);
    *ret_len = 1;
    if (c < 0x80)
        return c;
    if (c < 0xc2 || c > 0xf4 || more >= text.len - at)
        return 0xfffd;
    for (size_t i = 1; i <= more; i++) {
        if ((text.ptr[at + i] & 0xc0) != 0x80)
            return 0xfffd;
        rune = rune << 6 | (text.ptr[at + i] & 0x3fu);
    }
    *ret_len = more + 1;
    return rune;
}

static bool word_at(const struct regex_run *run, size_t at)
{
    return at < run->text.len && regex_is_word(run->text.ptr[at]);
}

static bool assertion_holds(const struct regex_run *run, uint32_t place, size_t at)
{
    struct slice text = run->text;
    bool edge = (at > 0 && word_at(run, at - 1)) != word_at(run, at);
    switch ((enum regex_place)place) {
    case REGEX_TEXT_BEGIN:
        return at == 0;
    case REGEX_TEXT_END:
        return at == text.len;
    case REGEX_LINE_BEGIN:
        return at == 0 || text.ptr[at - 1] == '\n';
    case REGEX_LINE_END:
        return at == text.len || text.ptr[at] == '\n';
    case REGEX_WORD_EDGE:
        return edge;
    default:
        return !edge;
    }
}

static bool in_ranges(const struct regex_step *step, uint32_t rune)
{
    for (uint32_t i = 0; i < step->rune; i++)
        if (rune >= step->ranges[i].low && rune <= step->ranges[i].high)
            return true;
    return false;
}

static uint32_t other_case(uint32_t c)
{
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return letter ? c ^ 0x20 : c;
}

static bool step_accepts(const struct regex_step *step, uint32_t rune)
{
    if (step->op == REGEX_RUNE)
        return rune == step->rune || (step->fold && other_case(rune) == step->rune);
    if (step->op != REGEX_CLASS)
        return false;
    bool within = in_ranges(step, rune) || (step->fold && in_ranges(step, other_case(rune)));
    return within != step->negated;
}

static bool thread_list_add(struct thread_list *threads, uint32_t at)
{
    uint32_t index = threads->index[at];
    if (index < threads->count && threads->at[index] == at)
        return false;
    threads->index[at] = threads->count;
    threads->at[threads->count++] = at;
    return true;
}

/* Follows the steps that consume no character. True: it is a match. */
static bool enter(struct regex_run *run, struct thread_list *threads, uint32_t first, size_t at)
{
    size_t depth = 0;
    run->stack[depth++] = first;
    while (depth) {
        uint32_t here = run->stack[--depth];
        const struct regex_step *step = &run->regex->steps[here];
        --*run->steps;
        if (!thread_list_add(threads, here))
            continue;
        if (step->op == REGEX_FOUND)
            return true;
        if (step->op == REGEX_SPLIT)
            run->stack[depth++] = (uint32_t)((int64_t)here + step->y);
        if (step->op == REGEX_SPLIT || step->op == REGEX_JUMP)
            run->stack[depth++] = (uint32_t)((int64_t)here + step->x);
        else if (step->op == REGEX_AT && assertion_holds(run, step->rune, at))
            run->stack[depth++] = here + 1;
    }
    return false;
}

/* Consumes one character. */
static bool advance(struct regex_run *run, uint32_t rune, size_t after)
{
    run->next.count = 0;
    for (uint32_t i = 0; i < run->now.count; i++) {
        const struct regex_step *step = &run->regex->steps[run->now.at[i]];
        *run->steps -= step->op == REGEX_CLASS ? 1 + step->rune / 4 : 1;
        if (step_accepts(step, rune) && enter(run, &run->next, run->now.at[i] + 1, after))
            return true;
    }
    struct thread_list swapped = run->now;
    run->now = run->next;
    run->next = swapped;
    return false;
}

static enum regex_result search(struct regex_run *run)
{
    size_t at = 0, len;
    while (*run->steps > 0) {
        if (enter(run, &run->now, 0, at))
            return REGEX_MATCH;
        if (at == run->text.len)
            return REGEX_NO_MATCH;
        uint32_t rune = regex_rune(run->text, at, &len);
        at += len;
        if (advance(run, rune, at))
            return REGEX_MATCH;
    }
    return REGEX_GAVE_UP;
}

/*
 * Space for four lists, and a stack onto which each step is pushed at most twice. Values left by an
 * earlier match are harmless: they count as unset indexes.
 */
static uint32_t *room_for(struct regex_scratch *scratch, size_t count)
{
    if (scratch->room && scratch->steps >= count)
        return scratch->room;
    scratch->steps = size_max(count, 2 * scratch->steps);
    scratch->room = arena_calloc(scratch->arena, 6 * scratch->steps + 1, sizeof(*scratch->room));
    return scratch->room;
}

enum regex_result regex_match(const struct regex *regex, struct slice text,
                              struct regex_scratch *scratch, int64_t *steps)
{
    size_t count = regex->count;
    uint32_t *room = room_for(scratch, count);
    int64_t left = *steps;
    if (!room)
        return REGEX_GAVE_UP;
    struct regex_run run = {.regex = regex,
                            .text = text,
                            .now = {.at = room, .index = room + count},
                            .next = {.at = room + 2 * count, .index = room + 3 * count},
                            .stack = room + 4 * count,
                            .steps = &left};
    enum regex_result result = search(&run);
    *steps = left;
    return result;
}
