#include "cel/library/patterns.h"

#include "cel/check/function.h"
#include "cel/value/container.h"
#include "regex/regex.h"

/* Steps of a regular expression are short. */
enum { STEPS_PER_STEP = 8 };

static const struct cel_value none = {.kind = CEL_NULL};

/* -- Patterns -- */

/* The steps that a regular expression may take. */
static int64_t lend_steps(const struct cel_work *work)
{
    int64_t steps;
    return __builtin_mul_overflow(work->steps_left, (int64_t)STEPS_PER_STEP, &steps) ? INT64_MAX
                                                                                     : steps;
}

static void return_steps(struct cel_work *work, int64_t lent, int64_t left)
{
    work->steps_left -= (lent - left) / STEPS_PER_STEP + 1;
}

struct cel_value cel_compile_pattern(struct cel_work *work, struct slice pattern,
                                     const struct regex **ret_regex)
{
    struct error error;
    int64_t lent = lend_steps(work);
    size_t left = lent > 0 ? (size_t)lent : 0;
    enum status status = regex_compile_within(work->arena, pattern, &left, ret_regex, &error);
    return_steps(work, lent, (int64_t)left);
    if (status == ST_OK)
        return none;
    return status == ST_NOMEM ? CEL_NO_MEMORY : cel_of_error_format(work, "%s", error.text);
}

/* The regular expression of a call. An error if the pattern has none. */
static struct cel_value find_regex(struct cel_work *work, struct slice pattern,
                                   const struct regex **ret_regex)
{
    *ret_regex = work->regex;
    if (work->regex)
        return none;
    work->steps_left -= (int64_t)(pattern.len / 64);
    if (!work->last_regex || !slice_equal(pattern, work->last_pattern)) {
        work->last_regex = NULL;
        struct cel_value error = cel_compile_pattern(work, pattern, &work->last_regex);
        if (cel_is_error(error))
            return error;
        work->last_pattern = pattern;
    }
    *ret_regex = work->last_regex;
    return none;
}

static struct cel_value illegal(struct cel_work *work, struct cel_value error)
{
    return cel_of_error_format(work, "Illegal regex: %.*s", SLICE_ARGS(cel_text(error)));
}

/* -- Matching -- */

static struct cel_value gave_up(struct cel_work *work)
{
    return work->steps_left < 0 ? CEL_TOO_MUCH_WORK : CEL_NO_MEMORY;
}

static struct cel_value matches(struct cel_work *work, const struct cel_value *args)
{
    const struct regex *regex;
    if (args[0].kind != CEL_STRING || args[1].kind != CEL_STRING)
        return CEL_NO_OVERLOAD;
    struct cel_value error = find_regex(work, cel_text(args[1]), &regex);
    if (cel_is_error(error))
        return error;
    int64_t lent = lend_steps(work), left = lent;
    work->scratch.arena = work->arena;
    enum regex_result result = regex_match(regex, cel_text(args[0]), &work->scratch, &left);
    return_steps(work, lent, left);
    return result == REGEX_GAVE_UP ? gave_up(work) : cel_of_bool(result == REGEX_MATCH);
}

struct match {
    size_t begin, end;
};

static enum regex_result find_from(struct cel_work *work, const struct regex *regex,
                                   struct slice text, size_t from, struct match *ret_match)
{
    int64_t lent = lend_steps(work), left = lent;
    work->scratch.arena = work->arena;
    enum regex_result result =
        regex_find(regex, text, from, &work->scratch, &left, &ret_match->begin, &ret_match->end);
    return_steps(work, lent, left);
    return result;
}

static struct cel_value find(struct cel_work *work, const struct cel_value *args)
{
    const struct regex *regex;
    struct match match;
    if (args[0].kind != CEL_STRING || args[1].kind != CEL_STRING)
        return CEL_NO_OVERLOAD;
    struct slice text = cel_text(args[0]);
    struct cel_value error = find_regex(work, cel_text(args[1]), &regex);
    if (cel_is_error(error))
        return illegal(work, error);
    enum regex_result result = find_from(work, regex, text, 0, &match);
    if (result == REGEX_GAVE_UP)
        return gave_up(work);
    if (result == REGEX_NO_MATCH)
        return cel_of_string(SLICE_EMPTY);
    return cel_of_string(slice_sub(text, match.begin, match.end - match.begin));
}

/* limit: at most so many; negative: all. */
static struct cel_value find_many(struct cel_work *work, const struct cel_value *args,
                                  int64_t limit)
{
    const struct regex *regex;
    struct match match;
    size_t from = 0, end_of_last = SIZE_MAX;
    struct slice text = cel_text(args[0]);
    struct cel_value error = find_regex(work, cel_text(args[1]), &regex);
    if (cel_is_error(error))
        return illegal(work, error);
    struct cel_value list = cel_list_new(work, 0);
    while (from <= text.len && limit != 0 && !cel_is_error(list)) {
        enum regex_result result = find_from(work, regex, text, from, &match);
        if (result == REGEX_GAVE_UP)
            return gave_up(work);
        if (result == REGEX_NO_MATCH)
            break;
        /* An empty match directly behind another match does not count. */
        bool counts = match.end != from || match.begin != end_of_last;
        if (match.end != from)
            from = match.end;
        else
            from += from < text.len ? cel_first_length(slice_sub(text, from, text.len - from)) : 1;
        end_of_last = match.end;
        if (!counts)
            continue;
        struct slice found = slice_sub(text, match.begin, match.end - match.begin);
        list = cel_list_append(work, list, cel_of_string(found));
        limit -= limit > 0;
    }
    return list;
}

static struct cel_value find_all(struct cel_work *work, const struct cel_value *args)
{
    if (args[0].kind != CEL_STRING || args[1].kind != CEL_STRING)
        return CEL_NO_OVERLOAD;
    return find_many(work, args, -1);
}

static struct cel_value find_limited(struct cel_work *work, const struct cel_value *args)
{
    if (args[0].kind != CEL_STRING || args[1].kind != CEL_STRING || args[2].kind != CEL_INT)
        return CEL_NO_OVERLOAD;
    return find_many(work, args, args[2].i64);
}

/* -- Cost -- */

/* A quarter of the pattern's size, as often as a tenth of the text's. */
static uint64_t cost_of_sizes(uint64_t text, uint64_t pattern)
{
    return cel_cost_traversal(text + 1) * (pattern / 4 + (pattern % 4 != 0));
}

static uint64_t cost_of_matches(struct cel_work *work, const struct cel_called *call)
{
    (void)work;
    /* cel-go counts only the member. */
    if (call->overload != CEL_OVERLOAD_MATCHES_STRING)
        return 1;
    return cost_of_sizes(cel_cost_size(call->args[0]), cel_cost_size(call->args[1]));
}

/* Kubernetes does not look into optionals. */
static uint64_t size_of(struct cel_value value)
{
    return value.kind == CEL_OPTIONAL ? 1 : cel_cost_size(value);
}

static uint64_t cost_of_find(struct cel_work *work, const struct cel_called *call)
{
    (void)work;
    return cost_of_sizes(size_of(call->args[0]), size_of(call->args[1]));
}

static const struct cel_builtin rows[] = {
    {"find", 2, find, true, 0, cost_of_find},
    {"findAll", 2, find_all, true, 0, cost_of_find},
    {"findAll", 3, find_limited, true, 0, cost_of_find},
    {"matches", 2, matches, false, 1 << CEL_STRING, cost_of_matches},
};

const struct cel_library cel_patterns = CEL_LIBRARY(rows);

bool cel_takes_pattern(const struct cel_builtin *builtin)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (builtin == &rows[i])
            return true;
    return false;
}
