/*
 * Regular expressions as Go's regexp (RE2) reads them, for the patterns of schemas: whether a text
 * has a match anywhere. Compiled to a program that is run over all its threads at once, so the time
 * is at most that of the program's length for each character, whatever the pattern.
 *
 * Not known: classes of Unicode properties (\p{L}). Ignoring case knows ASCII only.
 * Bounds: REGEX_INSTRUCTIONS_MAX after repeats are written out; a repeat at most 1000 times, as in
 * Go; REGEX_BYTES_MAX of the pattern, each of which is looked at a fixed number of times. Read-only
 * once it is made; lies in an arena.
 */
#ifndef VIGIL_KUBE_CUSTOM_REGEX_REGEX_H
#define VIGIL_KUBE_CUSTOM_REGEX_REGEX_H

#include "base/error.h"
#include "base/memory/arena.h"

struct regex;

enum {
    REGEX_INSTRUCTIONS_MAX = 10000,
    REGEX_REPEAT_MAX = 1000,
    REGEX_DEPTH_MAX = 100,
    REGEX_BYTES_MAX = 64 << 10,
};

/*
 * ST_INVALID: Go would refuse it, too; the error has its words. ST_UNIMPLEMENTED: it would not.
 * ST_LIMIT: too large; ST_NOMEM.
 */
MUST_CHECK
enum status regex_compile(struct arena *arena, struct slice pattern, const struct regex **ret_regex,
                          struct error *error);

/* The same, for one of many: takes what it costs from *steps, also where it fails; ST_LIMIT when
 * there are too few. */
MUST_CHECK
enum status regex_compile_within(struct arena *arena, struct slice pattern, size_t *steps,
                                 const struct regex **ret_regex, struct error *error);

enum regex_result { REGEX_NO_MATCH, REGEX_MATCH, REGEX_GAVE_UP };

/* Memory for one match after the other. Made with its arena, else zero. */
struct regex_scratch {
    struct arena *arena;
    uint32_t *room;
    size_t steps; /* of the largest program that it is enough for */
};

/* Takes what it costs from *steps, and gives up when there are none left, or no memory. */
enum regex_result regex_match(const struct regex *regex, struct slice text,
                              struct regex_scratch *scratch, int64_t *steps);

#endif
