#include "regex/regex_private.h"

#include "codec/utf8.h"

/* The threads at one character, each at another step, the preferred ones first. */
struct thread_list {
    uint32_t *at;
    uint32_t *begin; /* where the match of the thread begins */
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
    *ret_len = 1;
    if (c < 0x80)
        return c;
    size_t len = utf8_char_len(slice_sub(text, at, text.len - at));
    if (!len)
        return 0xfffd;
    uint32_t rune = c & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++)
        rune = rune << 6 | (text.ptr[at + i] & 0x3fu);
    *ret_len = len;
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

static bool class_has(const struct regex_class *class, uint32_t rune)
{
    uint32_t from = 0, to = class->count;
    if (rune < 0x80)
        return class->ascii[rune / 64] >> rune % 64 & 1;
    while (from < to) {
        uint32_t middle = (from + to) / 2;
        if (rune > class->ranges[middle].high)
            from = middle + 1;
        else if (rune < class->ranges[middle].low)
            to = middle;
        else
            return true;
    }
    return false;
}

/* A step may be reached in several ways; the first one is preferred. */
static bool thread_list_add(struct thread_list *threads, uint32_t at, size_t begin)
{
    uint32_t index = threads->index[at];
    if (index < threads->count && threads->at[index] == at)
        return false;
    threads->index[at] = threads->count;
    threads->begin[threads->count] = (uint32_t)begin;
    threads->at[threads->count++] = at;
    return true;
}

/* Follows the steps that consume no character. True: one of them is the end of a match. */
static bool enter(struct regex_run *run, struct thread_list *threads, uint32_t first, size_t at,
                  size_t begin)
{
    size_t depth = 0;
    bool found = false;
    run->stack[depth++] = first;
    while (depth) {
        uint32_t here = run->stack[--depth];
        const struct regex_step *step = &run->regex->steps[here];
        --*run->steps;
        if (!thread_list_add(threads, here, begin))
            continue;
        found |= step->op == REGEX_FOUND;
        if (step->op == REGEX_SPLIT)
            run->stack[depth++] = step->y;
        if (step->op == REGEX_SPLIT || step->op == REGEX_JUMP)
            run->stack[depth++] = step->x;
        else if (step->op == REGEX_AT && assertion_holds(run, step->x, at))
            run->stack[depth++] = here + 1;
    }
    return found;
}

/*
 * Lets the threads before `count` consume one character. True: one of them has reached the end of a
 * match.
 */
static bool advance(struct regex_run *run, uint32_t count, uint32_t rune, size_t after)
{
    bool found = false;
    run->next.count = 0;
    *run->steps -= count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = run->now.at[i];
        const struct regex_step *step = &run->regex->steps[at];
        if (step->op == REGEX_RUNE ? step->x == rune
                                   : step->op == REGEX_CLASS && class_has(step->class, rune))
            found |= enter(run, &run->next, at + 1, after, run->now.begin[i]);
    }
    struct thread_list swapped = run->now;
    run->now = run->next;
    run->next = swapped;
    return found;
}

/* How many threads come before the one that has found a match, which is preferred to the others. */
static uint32_t before_found(const struct regex_run *run, size_t at, size_t *ret_begin,
                             size_t *ret_end)
{
    uint32_t i = 0;
    while (run->regex->steps[run->now.at[i]].op != REGEX_FOUND)
        i++;
    *ret_begin = run->now.begin[i];
    *ret_end = at;
    return i;
}

/* ret_begin, ret_end: NULL if it does not matter which match is found. */
static enum regex_result search(struct regex_run *run, size_t at, size_t *ret_begin,
                                size_t *ret_end)
{
    bool found = false, matched = false;
    size_t len = 0;
    while (*run->steps > 0) {
        /* A match that begins here is preferred only to those that begin later. */
        if (!matched && (at == 0 || !run->regex->anchored))
            found |= enter(run, &run->now, 0, at, at);
        if (found && !ret_begin)
            return REGEX_MATCH;
        uint32_t count = found ? before_found(run, at, ret_begin, ret_end) : run->now.count;
        matched |= found;
        if (at == run->text.len || (!count && (matched || run->regex->anchored)))
            return matched ? REGEX_MATCH : REGEX_NO_MATCH;
        uint32_t rune = regex_rune(run->text, at, &len);
        at += len;
        found = advance(run, count, rune, at);
    }
    return REGEX_GAVE_UP;
}

/*
 * Space for six lists, and a stack onto which each step is pushed at most twice. Values left by an
 * earlier match are harmless: they count as unset indexes.
 */
static uint32_t *room_for(struct regex_scratch *scratch, size_t count)
{
    if (scratch->room && scratch->steps >= count)
        return scratch->room;
    scratch->steps = size_max(count, 2 * scratch->steps);
    scratch->room = arena_calloc(scratch->arena, 8 * scratch->steps + 1, sizeof(*scratch->room));
    return scratch->room;
}

static enum regex_result run_over(const struct regex *regex, struct slice text, size_t from,
                                  struct regex_scratch *scratch, int64_t *steps, size_t *ret_begin,
                                  size_t *ret_end)
{
    size_t n = regex->count;
    uint32_t *room = room_for(scratch, n);
    if (!room || text.len >= UINT32_MAX)
        return REGEX_GAVE_UP;
    struct regex_run run = {.regex = regex,
                            .text = text,
                            .now = {room, room + n, room + 2 * n, 0},
                            .next = {room + 3 * n, room + 4 * n, room + 5 * n, 0},
                            .stack = room + 6 * n};
    run.steps = steps;
    return search(&run, from, ret_begin, ret_end);
}

enum regex_result regex_match(const struct regex *regex, struct slice text,
                              struct regex_scratch *scratch, int64_t *steps)
{
    return run_over(regex, text, 0, scratch, steps, NULL, NULL);
}

enum regex_result regex_find(const struct regex *regex, struct slice text, size_t from,
                             struct regex_scratch *scratch, int64_t *steps, size_t *ret_begin,
                             size_t *ret_end)
{
    size_t begin, end;
    enum regex_result result = run_over(regex, text, from, scratch, steps, &begin, &end);
    if (result == REGEX_MATCH) {
        *ret_begin = begin;
        *ret_end = end;
    }
    return result;
}
