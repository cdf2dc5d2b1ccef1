/*
 * Regular expressions in the syntax of Go's regexp (RE2), with its errors: whether a text has a
 * match anywhere, and where the first one is. A pattern is compiled to a program whose threads run
 * in parallel over the text, so that the time is at most the program's length for each character,
 * for any pattern.
 *
 *     pattern ─► parse ─► tree ─► compile ─► steps ─► match
 *
 * Limits: REGEX_INSTRUCTIONS_MAX after repeats are expanded; as in Go, 1000 repetitions and a tree
 * of 1000 levels; REGEX_BYTES_MAX bytes of pattern, each of which is examined a constant number of
 * times. A program is allocated in an arena and read-only.
 */
#ifndef VIGIL_REGEX_REGEX_H
#define VIGIL_REGEX_REGEX_H

#include "base/error.h"
#include "base/memory/arena.h"

struct regex;

enum {
    REGEX_INSTRUCTIONS_MAX = 100000,
    REGEX_REPEAT_MAX = 1000,
    REGEX_DEPTH_MAX = 1000,
    REGEX_BYTES_MAX = 64 << 10,
};

/* ST_INVALID: invalid in Go, too; the error has Go's text. ST_LIMIT: too large; ST_NOMEM. */
MUST_CHECK
enum status regex_compile(struct arena *arena, struct slice pattern, const struct regex **ret_regex,
                          struct error *error);

/*
 * The same for one of many patterns: subtracts the cost from *steps, also if it fails; ST_LIMIT if
 * there are too few.
 */
MUST_CHECK
enum status regex_compile_within(struct arena *arena, struct slice pattern, size_t *steps,
                                 const struct regex **ret_regex, struct error *error);

/* The number of steps of a program: how long a character takes at most. */
uint32_t regex_effort(const struct regex *regex);

enum regex_result { REGEX_NO_MATCH, REGEX_MATCH, REGEX_GAVE_UP };

/* Memory that successive matches reuse. Initialized with an arena and otherwise zero. */
struct regex_scratch {
    struct arena *arena;
    uint32_t *room;
    size_t steps; /* size of the largest program for which it suffices */
};

/* Subtracts the cost from *steps, and gives up if none are left or there is no memory. */
enum regex_result regex_match(const struct regex *regex, struct slice text,
                              struct regex_scratch *scratch, int64_t *steps);

/*
 * The same for the first match that begins at `from` or behind it, and of these the one that a
 * backtracking matcher would find, as in Go. What is before `from` still counts for ^ and \b.
 */
enum regex_result regex_find(const struct regex *regex, struct slice text, size_t from,
                             struct regex_scratch *scratch, int64_t *steps, size_t *ret_begin,
                             size_t *ret_end);

#endif
