#include "cmd/ctl/decode/line_diff.h"

#include <stdlib.h>

/* -- Lines -- */

struct lines {
    struct slice *at;
    size_t count;
};

static void lines_fini(struct lines *lines)
{
    free(lines->at);
}

static size_t count_lines(struct slice text)
{
    size_t count = 0;
    while (text.len) {
        (void)slice_cut(&text, '\n');
        count++;
    }
    return count;
}

static enum status lines_split(struct slice text, struct lines *ret_lines)
{
    size_t count = count_lines(text);
    struct slice *at = calloc(count + 1, sizeof(*at));
    if (!at)
        return ST_NOMEM;
    for (size_t i = 0; i < count; i++)
        at[i] = slice_cut(&text, '\n');
    *ret_lines = (struct lines){at, count};
    return ST_OK;
}

/* -- The shortest script -- */

/*
 * The lines that differ, without the equal ones at both ends. frontier[k] is how far into `before`
 * the script gets on diagonal k (its place in `before` minus that in `after`) with some number of
 * changes; the frontiers of all smaller numbers are kept, to walk back.
 */
struct script {
    const struct slice *before, *after;
    long before_count, after_count;
    char *signs;  /* the result: '-' '+' ' ', in order */
    size_t count; /* number of signs */
};

/* The frontier for d changes begins after those of fewer, which have 1, 3, 5 … diagonals. */
static long *frontier_of(long *all, long d)
{
    return all + d * d + d; /* so that it is indexed by -d … d */
}

static bool steps_down(const long *last, long d, long k)
{
    return k == -d || (k != d && last[k - 1] < last[k + 1]);
}

/* Where diagonal k gets with d changes. */
static long advance(const struct script *s, const long *last, long d, long k)
{
    long x = 0;
    if (d > 0)
        x = steps_down(last, d, k) ? last[k + 1] : last[k - 1] + 1;
    while (x < s->before_count && x - k < s->after_count &&
           slice_equal(s->before[x], s->after[x - k]))
        x++;
    return x;
}

/* True: the end is reached with d changes. */
static bool extend(const struct script *s, long *all, long d)
{
    long *now = frontier_of(all, d), *last = d > 0 ? frontier_of(all, d - 1) : NULL;
    for (long k = -d; k <= d; k += 2) {
        now[k] = advance(s, last, d, k);
        if (now[k] >= s->before_count && now[k] - k >= s->after_count)
            return true;
    }
    return false;
}

static void add_signs(struct script *s, char sign, long count)
{
    for (long i = 0; i < count; i++)
        s->signs[s->count++] = sign;
}

/* Writes the signs from the end to the beginning, then turns them around. */
static void walk_back(struct script *s, long *all, long d)
{
    long x = s->before_count, k = s->before_count - s->after_count;
    for (; d > 0; d--) {
        const long *last = frontier_of(all, d - 1);
        bool down = steps_down(last, d, k);
        long from_k = down ? k + 1 : k - 1;
        long begin = down ? last[from_k] : last[from_k] + 1; /* after the change */
        add_signs(s, ' ', x - begin);
        add_signs(s, down ? '+' : '-', 1);
        x = last[from_k];
        k = from_k;
    }
    add_signs(s, ' ', x);
    for (size_t i = 0; i < s->count / 2; i++) {
        char sign = s->signs[i];
        s->signs[i] = s->signs[s->count - 1 - i];
        s->signs[s->count - 1 - i] = sign;
    }
}

/* Diagonals beyond the table's lines are never reached, because x stays within its bounds there:
 * a diagonal may leave the table by one line, where nothing is equal. */
static enum status find_script(struct script *s)
{
    long changes_max = s->before_count + s->after_count;
    if (changes_max > LINE_DIFF_CHANGES_MAX)
        changes_max = LINE_DIFF_CHANGES_MAX;
    long *all = malloc(sizeof(*all) * (size_t)(changes_max + 1) * (size_t)(changes_max + 1));
    if (!all)
        return ST_NOMEM;
    long d = 0;
    while (d <= changes_max && !extend(s, all, d))
        d++;
    if (d <= changes_max) {
        walk_back(s, all, d);
    } else {
        add_signs(s, '-', s->before_count);
        add_signs(s, '+', s->after_count);
    }
    free(all);
    return ST_OK;
}

/* -- Output -- */

/* Places in the result: `head` equal lines, the script, and equal lines to the end. */
struct result {
    const struct line_diff *diff;
    const struct lines *before, *after;
    const struct script *script;
    size_t head, tail;
};

static enum line_sign sign_at(const struct result *r, size_t i)
{
    if (i < r->head || i - r->head >= r->script->count)
        return LINE_SAME;
    return (enum line_sign)r->script->signs[i - r->head];
}

static size_t result_count(const struct result *r)
{
    return r->head + r->script->count + r->tail;
}

/* For each line, whether one within the context is changed: the distance to the next change. */
static size_t next_change(const struct result *r, size_t from)
{
    size_t count = result_count(r), end = from + r->diff->context + 1;
    for (size_t i = from; i < count && i < end; i++)
        if (sign_at(r, i) != LINE_SAME)
            return i;
    return SIZE_MAX;
}

static void emit(const struct result *r)
{
    size_t b = 0, a = 0, since = SIZE_MAX; /* lines since the last change */
    bool skipping = false;
    for (size_t i = 0; i < result_count(r); i++) {
        enum line_sign sign = sign_at(r, i);
        struct slice line = sign == LINE_ADDED ? r->after->at[a] : r->before->at[b];
        b += sign != LINE_ADDED;
        a += sign != LINE_REMOVED;
        since = sign != LINE_SAME ? 0 : since == SIZE_MAX ? since : since + 1;
        bool shown = since <= r->diff->context || next_change(r, i) != SIZE_MAX;
        if (!shown && !skipping)
            r->diff->fn(r->diff->ctx, LINE_SKIPPED, SLICE_EMPTY);
        if (shown)
            r->diff->fn(r->diff->ctx, sign, line);
        skipping = !shown;
    }
}

static size_t equal_head(const struct lines *b, const struct lines *a)
{
    size_t n = 0;
    while (n < b->count && n < a->count && slice_equal(b->at[n], a->at[n]))
        n++;
    return n;
}

static size_t equal_tail(const struct lines *b, const struct lines *a, size_t head)
{
    size_t n = 0;
    while (n < b->count - head && n < a->count - head &&
           slice_equal(b->at[b->count - 1 - n], a->at[a->count - 1 - n]))
        n++;
    return n;
}

enum status line_diff(const struct line_diff *diff, struct slice before, struct slice after)
{
    AUTO(lines_fini) struct lines b = {0};
    AUTO(lines_fini) struct lines a = {0};
    TRY(lines_split(before, &b));
    TRY(lines_split(after, &a));
    size_t head = equal_head(&b, &a), tail = equal_tail(&b, &a, head);
    struct script script = {
        .before = b.at + head,
        .after = a.at + head,
        .before_count = (long)(b.count - head - tail),
        .after_count = (long)(a.count - head - tail),
    };
    if (script.before_count + script.after_count == 0)
        return ST_OK;
    script.signs = malloc((size_t)(script.before_count + script.after_count));
    if (!script.signs)
        return ST_NOMEM;
    enum status status = find_script(&script);
    struct result result = {diff, &b, &a, &script, head, tail};
    if (status == ST_OK)
        emit(&result);
    free(script.signs);
    return status;
}
